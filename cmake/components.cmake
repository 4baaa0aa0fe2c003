# The components of src/, in the order of their layers, and which others each may use. This list is the whole truth:
# diapason_component() links what stands here, and the test `layers` fails where an #include is not covered by it, or
# where an entry is used by no #include.

# Foundations
set(DIAPASON_USES_base            "")           # errors, text, files, clocks, statistics, settings
set(DIAPASON_USES_process         base)         # programs that are started: spawn, output, sessions, /proc
set(DIAPASON_USES_domain          base)         # collectives, algorithms, protocols, configurations, findings
set(DIAPASON_USES_policy          base domain)  # the policy file: read, check, compile into a table
set(DIAPASON_USES_journal         base domain)  # the record of decisions: write, read, compare
set(DIAPASON_USES_job_profile     base domain journal)  # what a job does with its time, from its journals
set(DIAPASON_USES_mpi_record      base domain journal)  # what an MPI program's collectives were: the format, its reader
set(DIAPASON_USES_mpi_profile     base domain job_profile mpi_record)  # what an MPI program does with its time
set(DIAPASON_USES_learn           base domain)  # what to try next; pure: no clock, no files, no threads
set(DIAPASON_USES_rendezvous      base)  # processes with a shared secret exchange frames; ranks find each other by a store on rank 0
set(DIAPASON_USES_agree           base domain rendezvous)  # the same choice on every rank

# What the library loads
set(DIAPASON_USES_plugin_abi      base domain)
set(DIAPASON_USES_plugin_env      base domain plugin/abi)
set(DIAPASON_USES_plugin_profiler base domain plugin/abi)
set(DIAPASON_USES_plugin_learning base domain policy journal learn agree plugin/abi plugin/profiler)
set(DIAPASON_USES_plugin_tuner    base domain policy journal agree plugin/abi plugin/learning)
set(DIAPASON_USES_plugin_client   base domain journal)  # loads the plugin as a library does, and asks it
set(DIAPASON_USES_mpi_recorder    base domain journal mpi_record)  # is preloaded into MPI programs

# Running and measuring collectives
set(DIAPASON_USES_cell_server     base rendezvous agree)  # the server of a store at tcp://
set(DIAPASON_USES_comm            base domain policy rendezvous)
set(DIAPASON_USES_launch          base process rendezvous)  # starts ranks: local, mpirun, srun
set(DIAPASON_USES_dataset         base domain journal)
set(DIAPASON_USES_traces          base dataset)  # what other programs record: NCCL Inspector, PyTorch's profiler
set(DIAPASON_USES_measure         base domain policy comm launch dataset)
set(DIAPASON_USES_search          base domain comm launch dataset measure)
set(DIAPASON_USES_model           base domain policy dataset)

# Advice: what no call can change
set(DIAPASON_USES_knobs           base domain)  # the catalogue of environment variables
set(DIAPASON_USES_host            base process domain)  # what a machine and its processes are
set(DIAPASON_USES_doctor          base domain plugin/client comm knobs host)
set(DIAPASON_USES_watch           base process domain journal host)
set(DIAPASON_USES_flight_recorder base domain)  # dumps of PyTorch's flight recorder: who waits for whom
set(DIAPASON_USES_messages        base domain)  # known log messages and their meaning
set(DIAPASON_USES_logs            base domain knobs watch flight_recorder messages)
set(DIAPASON_USES_env_plan        base domain knobs host)
set(DIAPASON_USES_env_tune        base process domain journal knobs host env_plan)

# The tool
set(DIAPASON_USES_job             base process domain policy journal job_profile rendezvous agree cell_server launch knobs host doctor)  # `diapason run`
set(DIAPASON_USES_report          base domain policy journal dataset doctor)
set(DIAPASON_USES_compare         base dataset traces report)  # old and new measurements of the same calls
set(DIAPASON_USES_tune            base domain policy journal comm launch dataset traces measure search model logs report)
set(DIAPASON_USES_job_tune        base process domain policy journal job_profile agree learn launch dataset job report)
set(DIAPASON_USES_mpi_tune        base domain policy mpi_profile dataset measure search job report job_tune)
set(DIAPASON_USES_cli_framework   base domain report)
set(DIAPASON_USES_cli_commands    base domain policy journal job_profile mpi_record mpi_profile rendezvous agree cell_server plugin/client comm launch dataset measure
                                  search model knobs host doctor watch flight_recorder logs env_plan env_tune tune report compare job job_tune mpi_tune
                                  cli/framework)
