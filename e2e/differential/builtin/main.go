// Command builtin is kube-controller-manager with the delays of its Job controller changed, which
// no flag does: a test of hundreds of Jobs that fail and are retried would take hours with the 10s
// of the first back-off.
package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/pkg/controller/job"
)

func main() {
	for name, delay := range map[string]*time.Duration{
		"JOB_SYNC_BATCH_PERIOD":       &job.SyncJobBatchPeriod,
		"JOB_POD_FAILURE_BACKOFF":     &job.DefaultJobPodFailureBackOff,
		"JOB_MAX_POD_FAILURE_BACKOFF": &job.MaxJobPodFailureBackOff,
	} {
		if err := set(delay, os.Getenv(name)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
	}
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}

func set(delay *time.Duration, text string) (err error) {
	if text != "" {
		*delay, err = time.ParseDuration(text)
	}
	return err
}
