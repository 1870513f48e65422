// Package demo brings up a hub and two workers, runs the Jobs of package scenario through Jobferry,
// shows it live, and judges how they ended.
//
//	prepare: build ---> start hub, east, west ---> install chart, JobSet ---> register ---> submit ---> describe
//	                                                    |
//	watch:   WorkerClusters, Jobs, Events, Pods of the hub ---> board (package state) ---> screen (package view)
//	                                                    |
//	finish:  every Job has ended, or the time is up ---> table, exit code; with Keep: stay until Ctrl-C
//
// The hub is as an admin makes it by README.md: the chart's policies and roles, workers that the
// plugin has registered, a labelled namespace. Only the manager runs as a process, with the rights
// and the flags of its Deployment.
//
// This package is the shell: processes, clients, terminal. What is shown and how it is judged is
// decided in the packages below it, which are pure.
//
// Whatever ends the demo, nothing of it stays: package reap of the rig kills what still runs and
// removes the files.
package demo
