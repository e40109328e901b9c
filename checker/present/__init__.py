"""Presentation: the lanes, captions and diagram events with which reports and pictures show the runs of a model.

A presenter of each kind of model satisfies `checker.job.Presenter`. Models word nothing, and presenters decide nothing:
no verdict and no branch of a search depends on a text of this package.
"""

from checker.present.author import AuthorPresenter
from checker.present.generic import DefaultPresenter
from checker.present.model_job import job_of_model

__all__ = ["AuthorPresenter", "DefaultPresenter", "job_of_model"]
