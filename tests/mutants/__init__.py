"""Legal plans and schedules, changed at random: whatever the checker still accepts, a referee must confirm.

The referee and its helpers are written from the pages of the documentation alone and share nothing with
`onchip.check` and the judge of schedules.
"""

from __future__ import annotations

import sys
from pathlib import Path

for _room in ("check", "multi_dnn"):  # whose helpers import one another by their bare names
    if (_folder := str(Path(__file__).resolve().parents[1] / _room)) not in sys.path:
        sys.path.insert(0, _folder)
