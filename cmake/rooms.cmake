# Who may know whom. A room is a folder under src/; the list after it names the rooms it may use.
# diapason_component() refuses an edge that is not here, and an #include that goes round it.
set(DIAPASON_MAY_USE_base    "")
set(DIAPASON_MAY_USE_domain  base)
set(DIAPASON_MAY_USE_policy  base domain)
set(DIAPASON_MAY_USE_journal base domain)
# Turns rewards into the next choice; pure.
set(DIAPASON_MAY_USE_learn   base domain)
# Makes it the same choice on every rank.
set(DIAPASON_MAY_USE_agree   base domain)
set(DIAPASON_MAY_USE_plugin  base domain policy learn agree journal)
# Runs collectives; its backends for Gloo and Open MPI are modules, so that neither has to be there.
set(DIAPASON_MAY_USE_comm    base domain policy)
# Keeps what was measured; knows nothing of how.
set(DIAPASON_MAY_USE_dataset base domain journal)
# Times collectives and iterations, alone or in sweeps.
set(DIAPASON_MAY_USE_measure base domain comm dataset)
# Learns from what was measured, and writes policies.
set(DIAPASON_MAY_USE_model   base domain dataset policy)
# Measures, plans and proves it: what one command does with the rooms above.
set(DIAPASON_MAY_USE_tune    base domain policy comm dataset measure model)
# What no call can change: environment, placement, hardware, logs.
set(DIAPASON_MAY_USE_advise  base domain journal measure)
# Shows results: tables for the terminal, and the page of `diapason report`.
set(DIAPASON_MAY_USE_report  base domain policy journal dataset advise)
# The command-line tool knows every room but the plugin, which it opens with dlopen as NCCL does.
set(DIAPASON_MAY_USE_cli     base domain policy journal agree comm dataset measure
                             model tune advise report)
