"""Are latents that are fitted to each text a dimension of scale beyond weights and compute?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.probes import Compute, TextBound, TextLatents
from recombine.studies.shapes import ascending
from recombine.training.config import RunConfig

Fast = tuple[PositiveInt, PositiveFloat]
"""Fast steps, and their learning rate."""


def text_run(
    *, tasks: int, steps: int, eval_every: int, validation_tasks: int, topics: int, family: Any = "topics", **model: Any
) -> dict[str, Any]:
    """The settings of a run on texts, with as many styles as topics."""
    return {
        "family": family,
        "space": {"kind": "product", "factors": {"topic": topics, "style": topics}},
        "model": {"kind": "latent-decoder", **model},
        "recipe": {"kind": "fast", "tasks": tasks, "samples": 1, "steps": steps},
        "eval_every": eval_every,
        "validation_tasks": validation_tasks,
    }


class LatentThoughts(Study):
    """Are latents that are fitted to each text a dimension of scale beyond weights and compute?

    A decoder sees the last few tokens of a text, and latents of the text in every layer. The posterior of the latents is fitted to each text by
    fast steps; then the decoder makes one slow step. Texts have a topic and a style, which show only in the text as a whole, and a
    quarter of their combinations is held out. The bound is compared with latent-free decoders of as many weights, at as many steps and at as many
    operations, with exact likelihoods, and with itself where latents are moved between texts.
    """

    kind: Literal["latent-thoughts"] = "latent-thoughts"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": text_run(
                tasks=4,
                steps=4,
                eval_every=4,
                validation_tasks=4,
                topics=4,
                family={"kind": "topics", "groups": 2, "members": 3, "length": 12},
                latents=2,
                latent_size=3,
                layers=1,
            ),
            "fast": ((1, 0.3), (2, 0.3)),
            "latents": (1, 2),
            "widths": (4, 8),
            "wide": 12,
            "longer": 2,
            "longer_whole": 2,
            "texts": 8,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 8000},
        "paper": {
            "base": text_run(
                tasks=64,
                steps=5000,
                eval_every=500,
                validation_tasks=256,
                topics=32,
                family={"kind": "topics", "groups": 8, "members": 8, "length": 256},
                latents=8,
                latent_size=32,
                window=8,
                layers=4,
                heads=4,
            ),
            "fast": ((1, 0.3), (4, 0.3), (16, 0.3), (64, 0.3)),
            "latents": (1, 8, 32),
            "widths": (64, 128, 256),
            # As many weights and operations as with latents, by the compiler's count of a step.
            **{"mlp_ratio": 6, "wide": 1680, "longer": 38, "longer_whole": 38},
            "texts": 512,
            "replicates": 12,
        },
    }
    shown = "bits_in", "bits", "divergence", "exact", "training_flops"

    base: RunConfig = RunConfig.model_validate(
        text_run(
            tasks=16,
            steps=300,
            eval_every=100,
            validation_tasks=64,
            topics=6,
            family={"kind": "topics", "groups": 4, "members": 4, "concentration": 0.3},
            latent_size=4,
            window=2,
            mlp_ratio=2,
        )
    )
    """What all runs share; the arms set latents, fast steps and the decoder."""
    fast: tuple[Fast, ...] = ((1, 0.3), (4, 0.3), (16, 0.3))
    """Numbers of fast steps, fewest first, each with its learning rate."""
    latents: tuple[PositiveInt, ...] = (1, 2)
    """Numbers of latents in each layer, fewest first. All other runs have the most."""
    widths: tuple[PositiveInt, ...] = (16, 32)
    """Widths of the decoder, narrowest first. All other runs have the widest."""
    wide: PositiveInt = 108
    """The width at which a step of a latent-free decoder costs as much as one with latents."""
    longer: PositiveInt = 9
    """How many times as many steps a latent-free decoder gets, so that training costs as much as with latents."""
    longer_whole: PositiveInt = 9
    """The same for a latent-free decoder that sees the whole text."""
    mlp_ratio: PositiveInt = 4
    """Of latent-free decoders: as many weights as cross-attention has. With latents, it is that of the base."""
    uniform: PositiveFloat = 100.0
    """The concentration of the control: all topics and all styles are nearly the same, so nothing about a text is worth knowing."""
    texts: PositiveInt = 64
    """Texts of each region that are scored."""
    replicates: PositiveInt = Field(default=8)
    """Independent replicates: topics, styles, held-out combinations, initialisation and texts."""

    def check(self) -> None:
        ascending(self, "latents", "widths")
        steps = [number for number, _ in self.fast]
        if len(steps) < 2 or sorted(set(steps)) != steps:
            raise ValueError(f"fast must be at least two different numbers of fast steps, fewest first, got {steps}")

    @property
    def most(self) -> int:
        """The most fast steps."""
        return self.fast[-1][0]

    def arms(self) -> dict[str, Arm]:
        def cases(chosen: tuple[Fast, ...]) -> list[dict[str, Any]]:
            return [{"fast_steps": steps, "fast_rate": rate} for steps, rate in chosen]

        (steps, rate), middle = self.fast[-1], self.fast[len(self.fast) // 2]
        sizes: dict[str, Any] = {"latents": self.latents[-1], "width": self.widths[-1]}
        main = Arm(self.base, cases=cases(self.fast), **sizes)
        one = Arm(self.base, fast_steps=steps, fast_rate=rate, **sizes)
        # Without latents nothing is fitted, so the number of fast steps does not matter.
        plain = one.replace(latents=0, mlp_ratio=self.mlp_ratio, fast_steps=1)
        slow = self.base.recipe.steps
        return {
            "main": main,
            "latents": one.replace(latents=self.latents),
            "size": Arm(self.base, cases=cases((self.fast[0], self.fast[-1])), **sizes | {"width": self.widths}),
            "plain": plain,
            "plain_longer": plain.replace(steps=self.longer * slow),
            "plain_wider": plain.replace(width=self.wide),
            "whole": plain.replace(window=0, steps=self.longer_whole * slow),
            "control_uniform": one.replace(concentration=self.uniform, fast_steps=middle[0], fast_rate=middle[1]),
        }

    def measurements(self) -> list[Any]:
        return [TextBound(texts=self.texts), TextLatents(texts=self.texts), Compute()]

    def claims(self, main: Arm, latents: Arm, size: Arm, plain: Arm, control_uniform: Arm, **arms: Arm) -> Claims:
        longer, wider, whole = (arms[name] for name in ("plain_longer", "plain_wider", "whole"))
        least, most = self.fast[0][0], self.most

        def full(name: str) -> Column:
            return main[name].at(fast_steps=most)

        bits = full("bits")

        def apart(first: Column, second: Column) -> Column:
            """Half the distance of two columns, relative to their middle, whichever is larger."""
            half = (first - second) / (first + second)
            return half.map(abs)

        text = "The latent-free decoder of equal weights comes close to the exact limit of what its window shows (bits per token above it, trained combinations)."
        yield precondition("plain-fits", (plain["bits_in"] - plain["exact_reach_in"]).below(0.1), text)
        text = "With latents, texts of trained combinations are predicted better than by any model with that window (bits per token)."
        yield precondition("fits", full("gain_reach_in").above(0.0), text)
        text = "Decoders with and without latents have equally many weights (half their distance, relative to their middle)."
        yield precondition(
            "equal-weights", apart(main["weights"].at(fast_steps=most), plain["weights"]).below(0.02), text
        )
        for name, arm, words in (
            ("longer", longer, "with more steps"),
            ("wider", wider, "that is wider"),
            ("whole", whole, "that sees the whole text"),
        ):
            text = f"Training costs as many operations with latents as for the latent-free decoder {words} (half their distance, relative to their middle)."
            cost = apart(main["training_flops"].at(fast_steps=most), arm["training_flops"])
            yield precondition(f"equal-compute-{name}", cost.below(0.1), text)

        text = f"Latents help at equal weights: bits per token of held-out combinations, latent-free minus the bound with {most} fast steps."
        needs = ("plain-fits", "equal-weights")
        yield claim(
            "latents-help-at-equal-weights", (plain["bits"] - bits).greater(0.02), text, primary=True, needs=needs
        )
        for name, arm, words in (("more-steps", longer, "with more steps"), ("more-width", wider, "that is wider")):
            text = f"Latents help at equal compute: bits per token of a latent-free decoder {words}, minus the bound."
            needed = ("equal-compute-longer" if name == "more-steps" else "equal-compute-wider",)
            yield claim(f"latents-help-against-{name}", (arm["bits"] - bits).greater(0.02), text, needs=needed)
        text = "Latents do not replace a long window: bits per token of the bound, minus those of a latent-free decoder that sees the whole text, at equal compute."
        yield claim(
            "latents-do-not-replace-attention", (bits - whole["bits"]).greater(0.02), text, needs="equal-compute-whole"
        )
        text = "The bound is better than the best possible model that sees as few tokens (exact bits per token of that model, minus the bound)."
        yield claim("beyond-the-window", full("gain_reach").greater(0.02), text)

        text = f"Fast steps help: bits per token with {least} fast step minus with {most}."
        gain = main["bits"].at(fast_steps=least) - bits
        yield claim("fast-steps-help", gain.greater(0.02), text, primary=True, needs="fits")
        text = "More latents help: bits per token with the fewest latents minus with the most."
        yield claim("more-latents-help", (-latents["bits"].rise("latents")).greater(0.01), text, needs="fits")
        wide = size["bits"].at(fast_steps=most)
        text = "A larger decoder helps: bits per token of the narrowest minus the widest decoder."
        yield claim("larger-decoder-helps", (-wide.rise("width")).greater(0.01), text, needs="fits")
        small = size["bits"].at(width=self.widths[0])
        text = "Fast steps are a dimension of their own: they help the narrowest decoder too (bits per token, fewest minus most fast steps)."
        own = small.at(fast_steps=least) - small.at(fast_steps=most)
        yield claim("fast-steps-help-small-decoder", own.greater(0.02), text, needs="fits")
        text = "Fast steps are worth more than weights: the narrowest decoder with the most fast steps is better than the widest with the fewest (bits per token)."
        trade = main["bits"].at(fast_steps=least) - small.last("fast_steps")
        yield claim("fast-steps-beat-size", trade.greater(0.02), text, needs="fits")
        text = "A longer fit at evaluation helps, without training: bits per token with the fast steps of training, minus with twice as many."
        yield claim("longer-fit-helps", (bits - full("bits_longer")).greater(0.005), text, needs="fits")

        text = "The posterior differs from the prior (divergence in bits per token)."
        yield claim("divergence-is-positive", full("divergence").above(0.02), text)
        text = "Latents say something about their own text: bits per token with latents of a text of another combination, minus the bound."
        yield claim("shuffled-latents-hurt", (full("bits_shuffled") - bits).greater(0.1), text, needs="fits")
        text = "The bound with the noise that a posterior was fitted to is no bound: it is better than with fresh noise (bits per token, fresh minus same noise)."
        flattery = full("bits_fresh_noise") - full("bits_same_noise")
        yield claim("same-noise-is-no-bound", flattery.greater(0.02), text)

        text = "Held-out combinations of topic and style cost no more than trained ones (bits per token above the exact ones, held-out minus trained)."
        gap = full("excess") - full("excess_in")
        yield claim("held-out-combinations-cost-nothing", gap.equivalent(0.05), text, needs="fits")
        for factor in ("topic", "style"):
            text = f"The {factor} of texts of held-out combinations can be read from latents by a linear probe (share of texts named)."
            yield claim(f"{factor}-is-decodable", full(f"named_{factor}").above(0.5), text, needs="fits")
        text = "Training makes latents decodable: R2 of the probes of topic and style, trained minus untrained network (mean of both)."
        learned = full("r2_topic") + full("r2_style") - full("r2_topic_untrained") - full("r2_style_untrained")
        yield claim("training-makes-latents-decodable", (learned / 2).greater(0.05), text, needs="fits")
        text = "The probe cannot read targets that are random by combination (R2)."
        yield control("random-targets-are-not-decodable", full("r2_random").below(0.1), text, needs="fits")
        other = full("moved_other")
        for name, words in (
            ("same", "a text of the same combination"),
            ("topic", "a text of the same topic and another style"),
            ("style", "a text of the same style and another topic"),
            ("composed", "a linear map from topic and style, fitted on trained combinations"),
        ):
            text = f"Latents transfer: with latents from {words}, a text of a held-out combination costs fewer bits per token than with those of a text that shares neither."
            yield claim(f"transfer-{name}", (other - full(f"moved_{name}")).greater(0.05), text, needs="fits")
        text = "Composed latents are as good as those of another text of the same held-out combination (bits per token, composed minus that; upper limit)."
        composed = full("moved_composed") - full("moved_same")
        yield claim("composed-as-good-as-seen", composed.below(0.05), text, needs=("fits", "transfer-same"))
        text = "Where all topics and styles are nearly the same, latents gain nothing: the bound is no better than the best model of the same window (bits per token)."
        yield control("nothing-to-know-nothing-gained", control_uniform["gain_reach"].below(0.01), text)

    def figures(self, main: Arm, latents: Arm, size: Arm, plain: Arm, **arms: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        shown: dict[str, Any] = {"y": "bits", "y_title": "bits per token, held-out combinations"}
        yield lines(
            size.frame.assign(decoder=size.frame["width"].map(lambda width: f"width {width}")),
            x="fast_steps",
            x_title="fast steps",
            log=True,
            series="decoder",
            labels=[f"width {width}" for width in self.widths],
            name="by_fast_steps",
            title="Are fast steps a dimension of scale beyond size?",
            caption="The bound by the number of fast steps with which each text's latents are fitted, in training and evaluation.",
            **shown,
        )
        routes = {
            "fast steps": main.frame,
            "latents": latents.frame,
            "size": size.frame[size.frame["fast_steps"] == self.most],
            "latent-free, as many weights": plain.frame,
            "latent-free, more steps": arms["plain_longer"].frame,
            "latent-free, wider": arms["plain_wider"].frame,
            "latent-free, whole text": arms["whole"].frame,
        }
        frame = pd.concat([own.assign(route=name) for name, own in routes.items()])
        yield lines(
            frame.assign(billions=frame["training_flops"].astype(float) / 1e9),
            x="billions",
            x_title="billions of operations of training",
            log=True,
            series="route",
            labels=list(routes),
            name="by_compute",
            title="What does a unit of compute buy?",
            caption="Bits per token against the operations of all training steps, fast and slow ones, as the compiler counts them.",
            **shown,
        )
        names = {
            "main": "with latents",
            "plain": "latent-free, as many weights",
            "plain_longer": "latent-free, more steps",
            "plain_wider": "latent-free, wider",
            "whole": "latent-free, whole text",
        }
        tables = {"main": main.frame[main.frame["fast_steps"] == self.most], "plain": plain.frame}
        tables |= {name: arms[name].frame for name in names if name in arms}
        yield dots(
            pd.concat([tables[name].assign(network=words) for name, words in names.items()]),
            category="network",
            measures={"bits": "network", "exact": "exact, whole text", "exact_reach": "exact, with its window"},
            labels=list(names.values()),
            name="by_network",
            title="Is the gain from latents still there at equal compute?",
            caption="Bits per token of texts of held-out combinations, and the exact likelihoods of the texts.",
            x_title="bits per token",
        )
        moved = {
            "moved_own": "its own",
            "moved_same": "same topic and style",
            "moved_composed": "composed linearly",
            "moved_topic": "same topic",
            "moved_style": "same style",
            "moved_other": "neither",
            "moved_none": "none (mean of the prior)",
        }
        long = tables["main"].melt(["replicate"], list(moved), "latents_of", "moved").replace({"latents_of": moved})
        yield dots(
            long,
            category="latents_of",
            measures={"moved": "bits per token"},
            labels=list(moved.values()),
            name="moved",
            title="Do latents transfer from text to text?",
            caption="Bits per token of texts of held-out combinations with latents from other texts, without the divergence.",
            x_title="bits per token",
        )
