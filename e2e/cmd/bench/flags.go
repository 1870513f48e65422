package main

import (
	"flag"

	"github.com/jobferry/jobferry/e2e/bench"
)

// common adds the flags that all runs of the manager have.
func common(f *flag.FlagSet, o *bench.Common) {
	f.IntVar(&o.Workers, "workers", o.Workers, "number of worker clusters")
	f.Func("manager-flag", "flag for the manager, such as --log-level=debug; may be repeated", func(s string) error {
		o.ManagerFlags = append(o.ManagerFlags, s)
		return nil
	})
}

func floodFlags(f *flag.FlagSet, o *bench.FloodOptions) {
	f.IntVar(&o.Jobs, "jobs", o.Jobs, "Jobs submitted at once")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often they are, one after another, by turns with the floor")
	f.IntVar(&o.Singles, "singles", o.Singles, "Jobs submitted one at a time; 0: none")
	f.BoolVar(&o.Floor, "floor", o.Floor, "also submit the Jobs straight into one cluster, to compare")
	f.BoolVar(&o.Bound, "bound", o.Bound, "also send the writes that any dispatcher makes for these Jobs, and nothing else, to compare")
	f.BoolVar(&o.Peer, "peer", o.Peer, "also dispatch these Jobs by MultiKueue afterwards, to compare; its manager is built first")
	f.DurationVar(&o.Quiet, "quiet", o.Quiet, "how long the manager is watched at rest; 0: not at all")
	f.IntVar(&o.Resting, "resting", o.Resting, "Jobs that run all along")
	f.IntVar(&o.Submitters, "submitters", o.Submitters, "creates and deletes under way at a time")
	f.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	f.StringVar(&o.Against, "against", o.Against, "another manager's program to compare with, by turns; fails if the first is worse by more than noise")
	f.BoolVar(&o.Pods, "pods", o.Pods, "compare a manager that shows the Jobs' Pods on the hub with one that doesn't, by turns")
	f.IntVar(&o.Completions, "completions", o.Completions, "completions of each Job that is submitted at once")
	f.IntVar(&o.Parallelism, "parallelism", o.Parallelism, "Pods of each such Job at a time")
	f.StringVar(&o.Profiles, "profiles", o.Profiles, "existing folder for profiles: CPU of API servers and manager as floor and flood begin, the manager's heap after it")
	common(f, &o.Common)
}

func scaleFlags(f *flag.FlagSet, o *bench.ScaleOptions) {
	f.IntVar(&o.Jobs, "jobs", o.Jobs, "Jobs that run all along")
	f.IntVar(&o.Few, "few", o.Few, "how many of them are there when memory is measured for the first time")
	f.IntVar(&o.Finished, "finished", o.Finished, "Jobs that have finished")
	f.IntVar(&o.Lost, "lost", o.Lost, "workers that are lost at once; 0: none")
	f.IntVar(&o.Handovers, "handovers", o.Handovers, "how often the leader ends, one after another")
	f.DurationVar(&o.LostAfter, "lost-after", o.LostAfter, "the manager's worker-lost-timeout")
	f.IntVar(&o.Singles, "singles", o.Singles, "Jobs submitted one after another, with and without a slow worker")
	f.DurationVar(&o.Slow, "slow", o.Slow, "how late the slow worker answers")
	f.StringVar(&o.MemoryLimit, "memory-limit", o.MemoryLimit, "GOMEMLIMIT of the managers, such as 450MiB; empty: none")
	f.DurationVar(&o.TimeLimit, "time-limit", o.TimeLimit, "how long a run may take; what was measured until then is printed")
	f.StringVar(&o.Profiles, "profiles", o.Profiles, "directory for heap profiles of the manager after each start; empty: none")
	f.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	common(f, &o.Common)
}

func soakFlags(f *flag.FlagSet, o *bench.SoakOptions) {
	f.DurationVar(&o.Duration, "duration", o.Duration, "how long Jobs are submitted")
	f.Float64Var(&o.Rate, "rate", o.Rate, "Jobs per second; 0: four fifths of what the machine does with -at-a-time Jobs under way")
	f.IntVar(&o.AtATime, "at-a-time", o.AtATime, "Jobs that are under way while the rate is found out")
	f.DurationVar(&o.Trial, "trial", o.Trial, "how long that takes")
	f.DurationVar(&o.Leaders, "leaders", o.Leaders, "how long each manager leads")
	f.DurationVar(&o.Rotations, "rotations", o.Rotations, "time from one change of a worker's credentials to the next")
	f.DurationVar(&o.Samples, "samples", o.Samples, "time from one sample of the leader's memory to the next")
	f.DurationVar(&o.Settle, "settle", o.Settle, "how long a manager has led when it's sampled first")
	f.DurationVar(&o.TTL, "ttl", o.TTL, "how long finished Jobs are kept")
	f.StringVar(&o.Manager, "manager", o.Manager, "manager's program; default: built from the source")
	common(f, &o.Common)
}

func spanFlags(f *flag.FlagSet, o *bench.SpanOptions) {
	f.IntVar(&o.Indexes, "indexes", o.Indexes, "indexes of the Job")
	f.IntVar(&o.Parallelism, "parallelism", o.Parallelism, "parallelism of the Job")
	f.IntVar(&o.Room, "room", o.Room, "Pods that fit in each worker; 0: the workers that are left at the end have room for the parallelism, but none does alone")
	f.DurationVar(&o.RunFor, "run-for", o.RunFor, "how long each Pod runs; shorter than the machine allows, and it's the machine that is measured")
	f.Float64Var(&o.Drain, "drain", o.Drain, "share of the indexes that have completed when a worker is drained; 0: none is")
	f.Float64Var(&o.Lose, "lose", o.Lose, "share of the indexes that have completed when a worker is cut off for good; 0: none is")
	f.DurationVar(&o.LostAfter, "lost-after", o.LostAfter, "the manager's worker-lost-timeout; the fence closes well before")
	f.BoolVar(&o.Whole, "whole", o.Whole, "also run the Job in one cluster with the room of all, to compare")
	f.IntVar(&o.Small, "small", o.Small, "indexes of the Job that the manager's memory is compared with; 0: none")
	f.StringVar(&o.Programs, "programs", o.Programs, "folder with jobferry-manager and jobferry-worker; default: built from the source")
	common(f, &o.Common)
}
