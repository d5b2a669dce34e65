#!/bin/sh
# ranks.sh N PROGRAM ARGUMENT...: runs PROGRAM as N ranks on this machine, more than it has cores too.
ranks=$1
shift
# mpirun wants to be told twice that root may run programs.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# Open MPI's choice on one machine; looking for networks takes it 0.2 s at every start.
export OMPI_MCA_pml="${OMPI_MCA_pml:-ob1}"
export HECATE_COMM_TIMEOUT="${HECATE_COMM_TIMEOUT:-60}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# MPI and its helpers keep memory until exit.
export LSAN_OPTIONS=detect_leaks=0 ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
exec mpirun --oversubscribe --bind-to none -n "$ranks" "$@" </dev/null
