"""Analysis: exact and Monte Carlo laws, accuracy, figures. Reads runs and nothing else."""

from umdqn.analysis.accuracy import Distances, distances, summarise, truth
from umdqn.analysis.calibration import calibration_report, draw_calibration
from umdqn.analysis.comparison import Scores, scores_of, summary_table
from umdqn.analysis.exact import exact_laws, optimal_actions, optimal_policy, optimal_values
from umdqn.analysis.laws_report import write_report
from umdqn.analysis.laws_study import SECTIONS, LawsStudy
from umdqn.analysis.monte_carlo import monte_carlo_returns
from umdqn.analysis.reports import accuracy_report, draw_laws, evaluation_report
from umdqn.analysis.reproduction import Reproduction
from umdqn.analysis.scales import hours
from umdqn.analysis.sections import write_comparison
from umdqn.analysis.watching import watch

__all__ = [
    "SECTIONS",
    "Distances",
    "LawsStudy",
    "Reproduction",
    "Scores",
    "accuracy_report",
    "calibration_report",
    "distances",
    "draw_calibration",
    "draw_laws",
    "evaluation_report",
    "exact_laws",
    "hours",
    "monte_carlo_returns",
    "optimal_actions",
    "optimal_policy",
    "optimal_values",
    "scores_of",
    "summarise",
    "summary_table",
    "truth",
    "watch",
    "write_comparison",
    "write_report",
]
