#!/usr/bin/env bash
# A Slurm of one node on this machine, for tests: slurm.sh start DIR | stop DIR. Needs root, slurm-wlm and munge.
# While it runs, SLURM_CONF=DIR/slurm.conf makes sbatch, squeue and scontrol talk to it.
set -euo pipefail
verb=$1
dir=$2

stop() {
  for name in slurmd slurmctld munged; do
    [ -f "$dir/$name.pid" ] && kill "$(cat "$dir/$name.pid")" 2>/dev/null || true
  done
}

start() {
  mkdir -p "$dir"/{state,spool,log}
  chmod 755 "$dir"
  # Keys must not be readable by others.
  (umask 077 && head -c 128 /dev/urandom >"$dir/munge.key")
  munged --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" --log-file="$dir/log/munged.log" \
    --seed-file="$dir/munge.seed" --force
  local host
  host=$(hostname -s)
  # cred_expire: a requeued job waits until its old credential has expired, which is two minutes by default.
  cat >"$dir/slurm.conf" <<CONF
ClusterName=nsptest
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock,cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
SlurmctldPort=26817
SlurmdPort=26818
KillWait=5
InactiveLimit=0
MinJobAge=300
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$dir/slurm.conf
  slurmctld -i
  slurmd
  for _ in $(seq 60); do
    sinfo -h -o '%t' 2>/dev/null | grep -q '^idle' && return 0
    sleep 0.5
  done
  tail -n 5 "$dir"/log/*.log >&2
  stop
  return 1
}

"$verb"
