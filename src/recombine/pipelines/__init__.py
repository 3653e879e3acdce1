"""Audits of text-to-image pipelines of diffusers.

`audit_images` draws prompts, generates images, asks a judge about them, probes the blocks of the denoising network,
and relates what the probes read to success. Prompts and judges have their own packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.pipelines import judges as judges, prompts as prompts
    from recombine.pipelines.findings import ImagesAudit as ImagesAudit, SetFinding as SetFinding
    from recombine.pipelines.folder import ImageFolder as ImageFolder
    from recombine.pipelines.generation import GenerationSettings as GenerationSettings
    from recombine.pipelines.images_audit import ImagesResult as ImagesResult, audit_images as audit_images
    from recombine.pipelines.judges.base import make_judge as make_judge
    from recombine.pipelines.loading import LoadedPipeline as LoadedPipeline, load_pipeline as load_pipeline
    from recombine.pipelines.prompts.files import prompt_sets as prompt_sets
