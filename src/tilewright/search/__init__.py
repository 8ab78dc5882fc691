"""Search strategies: they choose which candidates are measured next."""

from tilewright.search.annealing import SimulatedAnnealing
from tilewright.search.base import Scorer, SearchStrategy, Told
from tilewright.search.best import Best
from tilewright.search.coordinate_descent import CoordinateDescent
from tilewright.search.diversity import choose_diverse
from tilewright.search.evolutionary import EvolutionarySearch
from tilewright.search.genetic import GeneticSearch
from tilewright.search.grid import GridSearch
from tilewright.search.options import number, share, whole
from tilewright.search.random import RandomSearch
from tilewright.search.registry import STRATEGIES, find_strategy, load_strategy
from tilewright.search.scored import ScoredSearch
from tilewright.search.tpe import TPESearch

__all__ = [
    "STRATEGIES",
    "Best",
    "CoordinateDescent",
    "EvolutionarySearch",
    "GeneticSearch",
    "GridSearch",
    "RandomSearch",
    "ScoredSearch",
    "Scorer",
    "SearchStrategy",
    "SimulatedAnnealing",
    "TPESearch",
    "Told",
    "choose_diverse",
    "find_strategy",
    "load_strategy",
    "number",
    "share",
    "whole",
]
