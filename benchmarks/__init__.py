"""Speed and memory, as ratios to a textbook implementation and to what this machine can do at most.

One file a question; each has `run(smoke)`, which measures, and returns rows. `capsroute bench` runs them, prints the
rows as a table and appends them to results/bench/, with the machine, its own limits and the commit.

    routing      a routing layer, forward and backward, against the same layer as a textbook has it
    step         a training step at the paper's sizes, against the plain reading and the machine's matrix product
    corpus       documents a second on real texts, and how long a step waits for them
    vocabulary   does a step cost more with more words?
    classes      does it cost more than in proportion with more classes?
    predict      bulk and single predictions, loading, importing

Times are medians of interleaved rounds: what disturbs the machine disturbs all cases alike. They are never a test.
"""

QUESTIONS = ("routing", "step", "corpus", "vocabulary", "classes", "predict")
