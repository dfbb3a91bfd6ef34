"""The OpenClaw store: sessions, memory and state of an OpenClaw installation behind the store port.

``open_openclaw`` finds an agent's databases and workspace; the store that it returns reads them without a trace (I3)
and, under the workspace lock, carries out the effects of a plan.
"""

from memprov.shell.openclaw.rosters import openclaw_agents, openclaw_roster
from memprov.shell.openclaw.store import OpenClawStore, open_openclaw

__all__ = ["OpenClawStore", "open_openclaw", "openclaw_agents", "openclaw_roster"]
