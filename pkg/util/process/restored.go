package process

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"
	"github.com/jobferry/jobferry/pkg/util/revision"
)

// restoredEvery is how often the cluster's state is compared with what it was before.
const restoredEvery = 10 * time.Second

// restored ends the process when the cluster's etcd is put back to an earlier state. Its caches
// show a later state then, and their watches go on as if nothing had happened. The next process
// begins with lists. It's a manager.Runnable, also of a standby.
type restored struct {
	live  client.Reader
	clock clock.WithTicker
}

// NeedLeaderElection says that a standby ends, too.
func (r *restored) NeedLeaderElection() bool { return false }

// Start compares until the context ends; its error ends the process.
func (r *restored) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(restoredEvery)
	defer ticker.Stop()
	latest := ""
	for {
		now := r.revision(ctx)
		if ownwrite.NewerVersion(latest, now) {
			return fmt.Errorf("the cluster's etcd was put back to an earlier state: its resourceVersion was %s, and is %s; "+
				"this process ends, so that the next one reads everything again", latest, now)
		}
		if now != "" {
			latest = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// revision is the resourceVersion of the cluster's state; empty: that isn't known.
func (r *restored) revision(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, restoredEvery)
	defer cancel()
	jobs := &metav1.PartialObjectMetadataList{}
	jobs.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("JobList"))
	version, err := revision.Read(ctx, r.live, jobs)
	if err != nil {
		return "" // the caches and the leader election find out what is wrong
	}
	return version
}
