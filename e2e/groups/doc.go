// Package groups tests Jobs that belong together with the real JobSet on the hub: its Jobs run in
// one worker, find each other there, restart, stop and move together, and no worker has anything of
// JobSet's. So do those of a TrainJob, with the real Kubeflow Trainer beside JobSet.
package groups
