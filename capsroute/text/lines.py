"""The lines of a text file, each as a string or as the reason why it is none."""

from collections.abc import Iterator

from capsroute.text.files import HEAD, Opened

BOM = b"\xef\xbb\xbf"


class Bad(str):
    """In place of a row: why there is none."""


def text_lines(opened: Opened) -> Iterator[tuple[int, str | Bad]]:
    """The lines of a file, numbered from 1, without their ends: LF, CRLF, or CR in a file that has no LF."""
    head = opened.head()
    lines = _lines_ending_in_cr(opened) if b"\r" in head and b"\n" not in head else opened.stream
    for number, line in enumerate(lines, 1):
        start = line.removeprefix(BOM) if number == 1 else line
        try:
            yield number, start.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            yield number, Bad(not_utf8(error.object[error.start]))


def _lines_ending_in_cr(opened: Opened) -> Iterator[bytes]:
    rest = b""
    while block := opened.stream.read(HEAD):
        *lines, rest = (rest + block).split(b"\r")
        yield from lines
    if rest.strip(b"\n"):
        yield rest


def not_utf8(byte: int) -> str:
    """Why a row is refused that holds this byte."""
    return (
        f"is not valid UTF-8 (byte 0x{byte:02x}; a file from Windows may be in the encoding cp1252: "
        "iconv -f cp1252 -t UTF-8 converts it)"
    )
