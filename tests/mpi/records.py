"""Results of cases of exact.py: in a file of JSON lines when there are hours of them, so that they can be
run in pieces and a piece that is broken off costs one case."""
import json
import os


class Records:
    def __init__(self, path):
        self.path, self.rows = path, []
        if path and os.path.exists(path):
            with open(path) as lines:
                self.rows = [json.loads(line) for line in lines]

    def has(self, case):
        return any(row["case"] == case for row in self.rows)

    def add(self, case, **found):
        """FOUND: the result of Bench.check, or error; seconds."""
        row = {"case": case} | found
        self.rows.append(row)
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps(row) + "\n")

    def failed(self):
        return sum("error" in row for row in self.rows)

    def summary(self, wanted):
        """Lines about all rows, of WANTED cases."""
        yield (f"{len(self.rows) - self.failed()} of {len(self.rows)} cases are exact"
               + (f"; {wanted} are wanted" if len(self.rows) != wanted else ""))
        for precision in sorted({row["case"]["precision"] for row in self.rows}):
            exact = [row for row in self.rows
                     if row["case"]["precision"] == precision and "error" not in row]
            if exact:
                yield (f"{precision}: {len(exact)} exact; worst gradient "
                       f"{max(row['gradient'] for row in exact):.3f} of what is allowed, worst loss "
                       f"{max(row['loss'] for row in exact):.0e}")
