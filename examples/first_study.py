"""A notebook: a first study, from its runs to its verdicts, then an audit and a plan.

Open it with `marimo edit examples/first_study.py`, or run it as a script. It trains for about a minute.
"""

import marimo

app = marimo.App(width="medium", app_title="Your first study")


@app.cell(hide_code=True)
def _():
    import marimo as mo

    return (mo,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Your first study

    Can a small network recombine what it knows? You will train 24 networks, read what they say about a claim, look at one
    of them, audit a table, and plan what to collect.

    This page is a notebook: `marimo edit examples/first_study.py` opens it (`pip install marimo`). Every result shows itself.
    """)
    return


@app.cell
def _():
    import pandas as pd

    import recombine as rc

    return pd, rc


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Run a study

    The study `data-scaling` trains networks on some combinations of 10 modules, and tests them on the others. Its claim: with
    more training combinations, the score of *held-out* combinations rises. The profile `smoke` is its smallest size. Here
    it gets six replicates, the fewest that can decide anything, and longer training.
    """)
    return


@app.cell
def _():
    settings = {"replicates": 6, "numbers": (20, 60), "base.recipe.steps": 600, "base.recipe.tasks": 64}
    return (settings,)


@app.cell
def _():
    store = "first-study-runs"
    return (store,)


@app.cell
def _(rc, settings, store):
    result = rc.run("data-scaling", profile="smoke", store=store, quiet=True, **settings)
    result
    return (result,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Read the column *answer* first. *Holds* means that the whole 95 % interval of the effect lies beyond the margin. The
    *preconditions* say whether the networks were trained well enough to answer the question at all; if one fails, the
    claims that need it are *not decided*. The *controls* use a task in which combinations share nothing, so nothing can be
    recombined: there, nothing may rise. [How verdicts are made](../docs/how-verdicts-are-made.md) has the rules.

    The runs are in a folder, the *store*. If you run the cell again, nothing is trained again.

    ## Look at the figures
    """)
    return


@app.cell
def _(result):
    result.figures[0]
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    `rc.view` shows any result with all that belongs to it: here in the notebook, in a terminal as a page in the browser.
    A run shows its settings, its scores and its curves.
    """)
    return


@app.cell
def _(rc, result):
    run = next(result.store.runs())
    rc.view(run)
    return (run,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    A stored run has its network and its data, so you can measure it again, also with a
    [probe](../docs/inside-a-network.md) that the study did not ask for.
    """)
    return


@app.cell
def _(pd, rc, run):
    pd.DataFrame([run.measure(rc.probes.Scores()).summary]).T.rename(columns={0: "value"})
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Audit a table

    Your own evaluation is a table: one column per factor, and a score. This robot grasps three things of three colours. It
    was trained without two of the combinations.
    """)
    return


@app.cell
def _(pd):
    colours, things = ("red", "blue", "green"), ("cup", "ball", "box")
    held_out = [("red", "box"), ("blue", "cup")]
    pairs = [(colour, thing) for colour in colours for thing in things]
    rows = [(*pair, int(pair not in held_out or trial == 0)) for pair in pairs for trial in range(4)]
    table = pd.DataFrame(rows, columns=["colour", "object", "success"])
    trained = pd.DataFrame([pair for pair in pairs if pair not in held_out], columns=["colour", "object"])
    return colours, table, things, trained


@app.cell
def _(rc, table, trained):
    audit = rc.audit(table, factors=["colour", "object"], scores="success", train=trained)
    rc.view(audit)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The audit names what training did not cover, how those combinations score, and what to do.
    [Audit a table](../docs/tutorial.md) follows a larger one to its repair.

    ## Plan what to collect
    """)
    return


@app.cell
def _(colours, rc, things, trained):
    space = rc.ProductSpace(factors={"colour": colours, "object": things})
    rc.make_plan(space, collected=trained.values.tolist(), strength=2)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Two combinations close the hole. [Plan data](../docs/planning.md) has constraints, costs and budgets.

    ## Where next

    - [Your own family and study](../docs/your-own-family.md)
    - [Audit a PyTorch or Hugging Face model](../docs/audit-a-model.md)
    - [The evidence](../docs/results/README.md): the same study at full size, and all the others
    """)
    return


if __name__ == "__main__":
    app.run()
