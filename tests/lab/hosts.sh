#!/usr/bin/env bash
# Two hosts on one machine, for tests of what happens between hosts: network namespaces with host names of their own, joined by a
# bridge in a third one. Needs root and iproute2. ID keeps parallel tests apart.
#
#   hosts.sh up ID             makes hosts nspIDa (10.99.0.1) and nspIDb (10.99.0.2)
#   hosts.sh mpirun ID ARG...  Open MPI's mpirun on the first host, one slot on each, over TCP
#   hosts.sh cut ID            takes the second host's link down
#   hosts.sh down ID           ends what still runs in them and removes them
set -eu
verb=$1
if [[ $verb == agent ]]; then  # what mpirun starts its daemon on the other host with: agent [-opts] HOST COMMAND...
  shift
  while [[ $1 == -* ]]; do shift; done
  host=$1
  shift
  exec ip netns exec "$host" unshare --uts bash -c "hostname $host; $*"
fi
id=$2
a=nsp${id}a b=nsp${id}b switch=nsp${id}s
case $verb in
  up)
    ip netns add "$switch"
    ip -n "$switch" link add bridge type bridge
    ip -n "$switch" link set bridge up
    number=1
    for host in "$a" "$b"; do
      ip netns add "$host"
      ip -n "$host" link set lo up
      ip -n "$switch" link add "port$number" type veth peer name eth0 netns "$host"
      ip -n "$switch" link set "port$number" master bridge up
      ip -n "$host" addr add "10.99.0.$number/24" dev eth0
      ip -n "$host" link set eth0 up
      mkdir -p "/etc/netns/$host"
      printf '127.0.0.1 localhost\n10.99.0.1 %s\n10.99.0.2 %s\n' "$a" "$b" >"/etc/netns/$host/hosts"
      number=$((number + 1))
    done
    ;;
  mpirun)
    shift 2
    # The agent is one word for mpirun.
    agent=$(mktemp)
    printf '#!/bin/sh\nexec %s agent "$@"\n' "$(realpath "$0")" >"$agent"
    chmod +x "$agent"
    trap 'rm -f "$agent"' EXIT
    code=0
    ip netns exec "$a" unshare --uts bash -c 'hostname "$0"; exec "$@"' "$a" \
      mpirun --bind-to none -host "$a:1,$b:1" --mca plm rsh --mca plm_rsh_agent "$agent" --mca pml ob1 --mca btl tcp,self \
      --mca btl_tcp_if_include 10.99.0.0/24 --mca oob_tcp_if_include 10.99.0.0/24 "$@" || code=$?
    exit $code
    ;;
  cut)
    ip -n "$b" link set eth0 down
    ;;
  down)
    for host in "$a" "$b"; do
      for process in $(ip netns pids "$host" 2>/dev/null); do kill -9 "$process" 2>/dev/null || true; done
      ip netns del "$host" 2>/dev/null || true
      rm -rf "/etc/netns/$host"
    done
    ip netns del "$switch" 2>/dev/null || true
    ;;
  *)
    sed -n '2,9p' "$0" >&2
    exit 2
    ;;
esac
