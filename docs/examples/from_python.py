"""A run without YAML: python docs/examples/from_python.py (as root, for the hosts)."""

from pathlib import Path

from wrackline.api import KillSpec, LogSpec, NemesisSpec, ScheduledSpec, Spec, run

kill = KillSpec(fault="kill", target="leader(log-0)")
SPEC = Spec(
    name="from-python",
    seed=7,
    workload=LogSpec(duration_s=10, rate=100),
    nemesis=NemesisSpec(schedule=(ScheduledSpec(at_s=2, duration_s=3, inject=kill),)),
)

if __name__ == "__main__":
    judged = run(SPEC, Path("results"))
    print(judged.line)
    print(judged.report)
