"""What the help of each command says behind its options."""

from __future__ import annotations

OVERVIEW = """\
exit status:
  0  done, and the answer is yes
  1  the answer is no: a certificate does not hold, a stage tells of the rows, the gate or the ledger refuses
  2  the command cannot be carried out as given: one line on standard error says where and what to change
  3  a fault in ppdp; what it says may hold private values and is not shown
  4  done, and what is written into files is there, but standard output cannot be written
  130  interrupted by Ctrl-C

examples:
  ppdp demo                                          certificate, picture and numbers on bundled medical data
  ppdp plan study.toml --rows 5000                   what a fit would cost; needs no data
  ppdp fit study.toml --data study.csv --out release
  ppdp show release                                  the certificate in words
  ppdp verify release                                compute it again
  ppdp ledger spent.db                               what was spent, and what is left
  ppdp audit study.toml                              try to break it
  ppdp help fit                                      the manual of a command
"""

_FILE = """\
pipeline file (TOML, or YAML with `pip install 'ppdp[yaml]'`):
  [data]
  label = "outcome"             column of labels
  drop = ["id"]                 columns that are not read
  missing = ["NA", -9]          what stands for a gap, beside empty cells
  one_hot = ["ward"]            columns of categories that become columns ward=A, ward=B of 0 and 1
  [data.categories]             public categories of columns of text; read as 0, 1, ...
  sex = ["F", "M"]
  ward = ["A", "B"]

  [domain]                      public facts: n_rows, n_features, feature_names, row_norm, entry_bound,
  rows_per_unit = 1             max_missing, min_present, classes, y_range, rows_per_unit, adjacency

  [pipeline]                    epsilon, delta, gate, invalid, dataset, budget; purpose, responsible:
  epsilon = 1.0                 what the release is for and who answers for it, in your words
  delta = 1e-6

  [[steps]]                     in their order; name may be left out, the rest are parameters of the class
  use = "MinMaxScaler"
  ranges = {age = [0, 110], sex = [0, 1]}   # columns that one_hot makes have [0, 1]
  [[steps]]
  name = "model"
  use = "LogisticRegression"
  classes = [0, 1]

  Nothing in it may be read off the private rows. Positions in messages, as steps[1], count from 0.
"""

_DATA = """\
data files:
  .csv, .csv.gz, .tsv with a header; .parquet, .pq; .arrow, .feather, .ipc. Names of columns and the number of rows
  are public. A cell that is neither a number, nor a category, nor a gap counts as an invalid value.
"""

MANUAL = {
    "demo": """\
examples:
  ppdp demo                            writes artifacts/flchain
  ppdp demo --data randhie --out here
""",
    "plan": _FILE
    + """
examples:
  ppdp plan study.toml --rows 5000
  ppdp plan study.toml --data study.parquet --json
""",
    "fit": _FILE
    + "\n"
    + _DATA
    + """
what is written:
  OUT is a new folder, there whole or not at all: model.zip (for ppdp.load), certificate.json, certificate.html.

ledger:
  With --ledger the fit is charged before it looks at a row, and what is charged stays, whatever happens afterwards.
  A new account is made with --limit only, so that a mistyped path is an error. `ppdp ledger` says what is left.

examples:
  ppdp fit study.toml --data study.csv --out release
  ppdp fit study.toml --data study.parquet --out release --ledger spent.db --limit 3 1e-5 --dataset study-2024
  ppdp fit study.yaml --data study.arrow --out release --import my_stages --json
""",
    "predict": """\
what is written:
  A CSV file with the column prediction, one row for each row of the data. The columns are made by the pipeline file, as
  they were for the fit: categories become numbers, one_hot columns become columns of 0 and 1. A prediction tells of
  the row that it is for; the certificate covers the model.

examples:
  ppdp predict release study.toml --data new.csv --out predictions.csv
""",
    "verify": """\
exit status:
  0 if the derivation holds and the digest matches, the signature too if there is one, and the certificate is what
  --require and --max-epsilon ask for; 1 if not; 2 if there is no certificate. Of model.zip, of a folder of `ppdp fit`
  and of Parquet, the released numbers must be those of the certificate as well.

examples:
  ppdp verify release
  ppdp verify model.zip --require unconditional --max-epsilon 1
  ppdp verify certificate.json --signature certificate.json.sig --public-key public.pem
  ppdp verify certificate.json --import my_stages      for bounds that a module of yours registers
""",
    "show": """\
examples:
  ppdp show release                                    what `ppdp fit` wrote
  ppdp show model.zip --html certificate.html
  ppdp show counts.parquet --json
""",
    "card": """\
exit status:
  0 if it is printed, 1 if the certificate does not hold.

examples:
  ppdp card release >> README.md
  ppdp card release/certificate.json
""",
    "record": """\
file of facts (TOML, or YAML with `pip install 'ppdp[yaml]'`):
  name = "Visits"
  description = "A model of visits."
  intended_use = "Planning of shifts."
  region = "Norway"                      whom the data describe, or whose laws apply
  publication_date = 2026-11-21
  authors = ["Ann Author"]               who writes the record
  product_type = "Machine learning model"    may be left out: it follows from the last step
  [curators]                             who publishes, each "Government", "Industry" or "Nonprofit"
  "Our clinic" = "Nonprofit"
  [further.deployment_model]             further fields of the registry, by section; may be left out
  release_type = "One release"

  All else follows from the certificate, and the file cannot say otherwise. YAML is printed with
  `pip install 'ppdp[yaml]'`; --json needs nothing.

exit status:
  0 if it is printed, 1 if the certificate does not hold, is SEEDED, names classes that were read from the data, or is
  CONDITIONAL and --conditional is not given; 2 if the file says what the registry would not read.

examples:
  ppdp record release about.toml > record.yaml
  ppdp record release/certificate.json about.toml --json
""",
    "sign": """\
a key of Ed25519, with openssl:
  openssl genpkey -algorithm ed25519 -out key.pem      keep it; add -aes256 for a password
  openssl pkey -in key.pem -pubout -out public.pem     hand it to whoever verifies

exit status:
  0 if the signature is written, 1 if the certificate does not hold, is SEEDED (its noise protects nobody), or is
  CONDITIONAL and --conditional is not given.

examples:
  ppdp sign release/certificate.json --key key.pem     writes release/certificate.json.sig
  ppdp sign certificate.json --key key.pem --password password.txt --out signed.sig
""",
    "ledger": """\
what is printed:
  Every entry, and for each dataset the epsilon of all its entries together at the delta of the limit (without a limit:
  at --delta, 1e-6 by default), and the limit minus that. Spends add up to less than their sum; whether one more has
  room is decided when it is charged.

examples:
  ppdp ledger spent.db
  ppdp ledger spent.db --json
""",
    "lint": """\
severities:
  none       no value is looked at
  declared   the same, if you are right about something that nobody can check
  low        averages of all rows
  high       one row can decide what leaves
  Functions among the parameters are run on made-up rows.

exit status:
  0 if all are "none", 1 if one is not.

examples:
  ppdp lint training.py:pipe
  ppdp lint mypackage.training:pipe --json
""",
    "compare": """\
what is compared:
  naive claim        the noise that would do if pre-processing were free, and the epsilon that can be proved for it
  group privacy      as much noise as covers any row that may have moved
  all-exact route    every stage fitted without noise, conditions tested
  all-noisy route    every stage fitted from released statistics
  ours               the route of least noise

examples:
  ppdp compare study.toml --rows 5000
  ppdp compare with_pca.toml without_pca.toml --rows 5000 --json
""",
    "audit": """\
what is attacked, on made-up data only:
  stages      neighbouring datasets are searched for that a stage pushes further apart than it claims
  answers     the same, for what the mechanism would answer without noise
  releases    the plan is executed many times on the worst pair, and what is released is told apart: a lower bound
              on epsilon at confidence 1 - 1e-6, beside what is certified
  membership  instead of all that, with --membership: as many models as --runs says are trained, and told apart by how
              well they fit one row
  With few rows the runs are fast, and one row tells more. Without --rows, and without n_rows in the file, the fewest
  rows are taken that have a route. Before it begins, one line on standard error says about how long it will take.

exit status:
  0 if nothing was found (which proves nothing), 1 if a claim is false.

examples:
  ppdp audit study.toml --out audit.html
  ppdp audit study.toml --rows 100 --runs 100000 --jobs -1 --folder runs
  ppdp audit study.toml --rows 20 --runs 1000 --membership
""",
    "completion": """\
examples:
  ppdp completion bash > ~/.local/share/bash-completion/completions/ppdp
  ppdp completion zsh > ~/.zfunc/_ppdp                 with fpath+=~/.zfunc before compinit
  ppdp completion fish > ~/.config/fish/completions/ppdp.fish
""",
    "help": """\
examples:
  ppdp help fit
""",
}
