"""Positions of the nodes of a network, as boxes that do not touch.

In a blanket, neighbours of one query variable lie around it, shared ones in between. In a whole network, springs
hold connected variables together, and connected components lie beside each other.

A node is a box as wide as its name. Initial positions follow from the graph; boxes that overlap are then pushed
apart, and where they are too dense for that, all positions are scaled up a little, until no two boxes touch.
Nothing is random, so the same network looks the same every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from scipy.spatial import KDTree

from markovblanket.contracts import Array

# Smallest distance between two boxes, in inches.
BOX_SPACING = 0.08
# Height over width of the ellipse of query variables: boxes are far wider than high.
ELLIPSE_ASPECT = 0.7
# With several query variables, neighbours lie within this angle of the direction away from the centre.
FAN_HALF_ANGLE = math.radians(150)
# Of whole networks: median length of an edge and distance between connected components, in inches; how much wider
# than high they are drawn.
EDGE_LENGTH = 1.1
COMPONENT_SPACING = 0.4
WIDENING = 1.4
# Boxes fill at most this share of a connected component, or they would be pushed into columns.
MOST_FILLED = 0.08


# Blankets -----------------------------------------------------------------------------------------------------


def place(
    query: Sequence[Any], neighbours: Mapping[Any, Sequence[Any]], boxes: Mapping[Any, tuple[float, float]]
) -> dict[Any, Array]:
    """Return the centre of the box of each node.

    Parameters
    ----------
    query : sequence
        The query variables.
    neighbours : mapping
        The query variables to which each other variable is connected, the surest first.
    boxes : mapping
        Width and height of every node.

    Returns
    -------
    dict
        A pair of coordinates per node, in the unit of the boxes.

    Examples
    --------
    >>> where = place(["T"], {"A": ["T"], "B": ["T"]}, {name: (1.0, 0.3) for name in "TAB"})
    >>> sorted(where), where["T"].tolist()
    (['A', 'B', 'T'], [0.0, 0.0])
    """
    own: dict[Any, list[Any]] = {name: [] for name in query}
    shared: dict[tuple[Any, ...], list[Any]] = {}
    for name, ends in neighbours.items():
        if len(ends) == 1:
            own[ends[0]].append(name)
        else:
            shared.setdefault(tuple(sorted(ends, key=list(query).index)), []).append(name)
    where = _queries(_in_order(query, shared), own, shared, boxes)
    for name in query:
        where |= _around(where[name], own[name], boxes, boxes[name], len(query) > 1)
    for ends, names in shared.items():
        where |= _between([where[end] for end in ends], names, boxes)
    return apart(where, boxes, fixed=len(query))


def _in_order(query: Sequence[Any], shared: Mapping[tuple[Any, ...], Sequence[Any]]) -> list[Any]:
    """Order the query variables: each is followed by the one with which it shares most neighbours."""
    ties = {(a, b): 0 for a in query for b in query}
    for ends, names in shared.items():
        for pair in ((a, b) for a in ends for b in ends if a != b):
            ties[pair] += len(names)
    order, rest = [query[0]], list(query[1:])
    while rest:
        order.append(max(rest, key=lambda name: ties[order[-1], name]))  # ties: the first in the given order
        rest.remove(order[-1])
    return order


def _queries(
    order: Sequence[Any],
    own: Mapping[Any, Sequence[Any]],
    shared: Mapping[tuple[Any, ...], Sequence[Any]],
    boxes: Mapping[Any, tuple[float, float]],
) -> dict[Any, Array]:
    """Place the query variables on an ellipse, with space for their own neighbours, and for shared ones inside."""
    if len(order) == 1:
        return {order[0]: np.zeros(2)}
    room = np.array([_reach(own[name], boxes, boxes[name]) for name in order])
    inside = _radius([name for names in shared.values() for name in names], boxes)
    radius = max(1.15 * room.sum() / math.pi, inside + 0.5 * room.max(), room[:2].max())
    ends = np.cumsum(room)
    angles = math.pi / 2 - 2 * math.pi * (ends - room / 2) / ends[-1] + math.pi * room[0] / ends[-1]
    return {
        name: radius * np.array([math.cos(angle), ELLIPSE_ASPECT * math.sin(angle)])
        for name, angle in zip(order, angles, strict=True)
    }


def _reach(names: Sequence[Any], boxes: Mapping[Any, tuple[float, float]], own: tuple[float, float]) -> float:
    """Return how far a query variable's own neighbours extend from it."""
    return max([own[0], *(a for _, a, _ in _rings(names, boxes, own, FAN_HALF_ANGLE))])


def _radius(names: Sequence[Any], boxes: Mapping[Any, tuple[float, float]]) -> float:
    """Return the radius of a disc that loosely holds the boxes of these nodes."""
    return math.sqrt(sum((boxes[name][0] + BOX_SPACING) * (boxes[name][1] + BOX_SPACING) for name in names))


def _rings(
    names: Sequence[Any], boxes: Mapping[Any, tuple[float, float]], own: tuple[float, float], spread: float
) -> Iterator[tuple[Sequence[Any], float, float]]:
    """Yield the names on each ring around a box, and the half axes of that ring."""
    left, ring = list(names), 1
    while left:
        width = max(boxes[name][0] for name in left)
        a, b = own[0] / 2 + ring * (0.75 * width + 0.3), own[1] / 2 + ring * 0.55
        count = max(int(2 * spread * math.sqrt((a * a + b * b) / 2) / (0.6 * width + BOX_SPACING)), 3)
        yield left[:count], a, b
        left, ring = left[count:], ring + 1


def _around(
    centre: Array,
    names: Sequence[Any],
    boxes: Mapping[Any, tuple[float, float]],
    own: tuple[float, float],
    outwards: bool,
) -> dict[Any, Array]:
    """Place neighbours on rings around a query variable; ``outwards`` keeps them away from the origin."""
    start, spread = (math.atan2(centre[1], centre[0]), FAN_HALF_ANGLE) if outwards else (math.pi / 2, math.pi)
    rings, taken, where = list(_rings(names, boxes, own, spread)), [0] * len(names), {}
    step = 2 * spread / max(len(names) + (1 if outwards else 0), 1)
    for slot in range(len(names)):
        # No two lines have the same direction: rings take directions in turn, in proportion to their sizes.
        ring = min(range(len(rings)), key=lambda r: (taken[r] + 0.5) / len(rings[r][0]))
        now, a, b = rings[ring]
        angle = start - spread + (slot + (1 if outwards else 0)) * step
        where[now[taken[ring]]] = centre + np.array([a * math.cos(angle), b * math.sin(angle)])
        taken[ring] += 1
    return where


def _between(
    ends: Sequence[Array], names: Sequence[Any], boxes: Mapping[Any, tuple[float, float]]
) -> dict[Any, Array]:
    """Stack shared neighbours at the mean of their query variables, a little nearer the first of these.

    Neighbours of two query variables stand beside the line between these, which may itself be an edge.
    """
    middle = np.mean(ends, axis=0) + 0.04 * (ends[0] - ends[-1])
    heights = [boxes[name][1] + BOX_SPACING for name in names]
    tops = np.cumsum(heights) - sum(heights) / 2
    if len(ends) == 2:
        middle = middle + _aside(ends[0], ends[1], max(boxes[name][0] for name in names), sum(heights))
    return {name: middle - [0.0, top] for name, top in zip(names, tops, strict=True)}


def _aside(one: Array, other: Array, width: float, height: float) -> Array:
    """Return the shift that moves a box off the line between two points, towards the origin."""
    along = (other - one) / np.linalg.norm(other - one)
    across = np.array([-along[1], along[0]])
    if across @ (one + other) > 0:
        across = -across
    return across * ((abs(across[0]) * width + abs(across[1]) * height) / 2 + 3 * BOX_SPACING)


# Whole networks -----------------------------------------------------------------------------------------------


def whole(graph: nx.Graph, boxes: Mapping[Any, tuple[float, float]]) -> dict[Any, Array]:
    """Return the centre of the box of each node of a graph: connected components in rows, the largest first."""
    components = sorted(nx.connected_components(graph), key=len, reverse=True)
    order = {name: k for k, name in enumerate(graph)}
    found = [_component(graph, sorted(names, key=order.__getitem__), boxes) for names in components]
    sizes = np.array([_extent(where, boxes) for where in found]).reshape(-1, 2) + COMPONENT_SPACING
    width = max(sizes[:, 0].max(initial=0.0), 1.6 * math.sqrt(sizes.prod(axis=1).sum()))
    corner, height = np.zeros(2), 0.0
    out: dict[Any, Array] = {}
    for where, size in zip(found, sizes, strict=True):
        if corner[0] and corner[0] + size[0] > width:
            corner, height = np.array([0.0, corner[1] - height]), 0.0
        middle = corner + np.array([size[0], -size[1]]) / 2
        out |= {name: centre + middle for name, centre in where.items()}
        corner, height = corner + np.array([size[0], 0.0]), max(height, size[1])
    return out


def _component(
    graph: nx.Graph, names: Sequence[Any], boxes: Mapping[Any, tuple[float, float]]
) -> dict[Any, Array]:
    """Return centres of the nodes of a connected component: springs from a circle, so nothing is random."""
    if len(names) == 1:
        return {names[0]: np.zeros(2)}
    ring = nx.Graph()  # in the given order, which a view of the whole graph would not have
    ring.add_nodes_from(names)
    ring.add_edges_from((name, other) for name in names for other in graph[name])
    start = nx.circular_layout(ring)
    springs = nx.spring_layout(ring, pos=start, iterations=200, scale=None, k=1 / math.sqrt(len(ring)))
    centre = _lying(np.array([springs[name] for name in ring]))
    place = dict(zip(ring, centre, strict=True))
    steps = np.array([place[a] - place[b] for a, b in ring.edges])
    centre *= EDGE_LENGTH / np.median(np.linalg.norm(steps, axis=1))
    filled = sum(math.prod(boxes[name]) for name in names) / max(float(np.ptp(centre, axis=0).prod()), 1e-9)
    centre *= math.sqrt(max(1.0, min(filled / MOST_FILLED, len(names))))
    where = apart(dict(zip(ring, centre, strict=True)), boxes)
    low, high = corners(where, boxes)
    return {name: here - (low + high) / 2 for name, here in where.items()}


def _lying(centre: Array) -> Array:
    """Return points turned so that their longest extent is horizontal, and widened, as pages are wide."""
    centred = centre - centre.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    signs = np.where(axes[:, :1] < 0, -1.0, 1.0)  # the decomposition leaves them open
    return np.asarray(centred @ (signs * axes).T * [WIDENING, 1.0])


def corners(where: Mapping[Any, Array], boxes: Mapping[Any, tuple[float, float]]) -> tuple[Array, Array]:
    """Return the lower left and upper right corners of the smallest rectangle that holds all boxes."""
    centre, size = np.array(list(where.values())), np.array([boxes[name] for name in where])
    return (centre - size / 2).min(axis=0), (centre + size / 2).max(axis=0)


def _extent(where: Mapping[Any, Array], boxes: Mapping[Any, tuple[float, float]]) -> Array:
    """Return width and height of the smallest rectangle that holds all boxes."""
    low, high = corners(where, boxes)
    return high - low


# Boxes that do not touch ----------------------------------------------------------------------------------------


def apart(where: dict[Any, Array], boxes: Mapping[Any, tuple[float, float]], fixed: int = 0) -> dict[Any, Array]:
    """Separate overlapping boxes; the first ``fixed`` nodes, the query variables, move only by scaling."""
    centre = np.array(list(where.values()), dtype=float)
    size = np.array([boxes[name] for name in where]) + BOX_SPACING
    centre[fixed:] += 1e-6 * np.arange(2 * (len(centre) - fixed)).reshape(
        -1, 2
    )  # boxes at the same place need a direction
    while _pushed(centre, size, fixed):
        centre *= 1.1
    return dict(zip(where, centre, strict=True))


def _pushed(centre: Array, size: Array, fixed: int, rounds: int = 150) -> bool:
    """Push overlapping boxes apart, in place, along the axis of smaller overlap; whether some still overlap."""
    reach = size.max(axis=0)
    free = np.ones(len(centre))
    free[:fixed] = 0.0
    for _ in range(rounds):
        # Boxes further apart than the largest one cannot touch; the tree finds the other pairs without trying all.
        i, j = KDTree(centre / reach).query_pairs(1.0, p=np.inf, output_type="ndarray").T
        away = centre[i] - centre[j]
        overlap = (size[i] + size[j]) / 2 - np.abs(away)
        touching = (overlap > 1e-9).all(axis=1)
        if not touching.any():
            return False
        i, j, away, overlap = i[touching], j[touching], away[touching], overlap[touching]
        along, pairs = overlap.argmin(axis=1), np.arange(len(i))
        push = np.sign(away[pairs, along]) * overlap[pairs, along] / np.maximum(free[i] + free[j], 1.0)
        np.add.at(centre, (i, along), push * free[i])
        np.subtract.at(centre, (j, along), push * free[j])
    return True
