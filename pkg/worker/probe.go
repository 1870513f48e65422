package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// probe notices another Job controller that runs the Jobs that this one runs in the built-in's
// place. Both would create each Pod. The probe is a suspended Job that this controller doesn't
// sync: whoever writes its status is another one. Any Job controller does so as soon as it sees the
// Job, and again when it starts.
//
// Nothing else is as sound. The Lease of kube-controller-manager doesn't say which controllers run
// in it. Whoever may update a Job may write into its managedFields. The built-in's events are like
// those of this controller.
type probe struct {
	client client.Client
	live   client.Reader
	key    types.NamespacedName
	// wait is how long a Job controller may take before this one starts, and every how often this
	// one looks afterwards.
	wait, every time.Duration
	passed      chan struct{} // closed once this one may start
	warned      bool
}

const (
	probeName  = "jobferry-worker-probe"
	probeWait  = 3 * time.Second
	probeEvery = 10 * time.Second
)

// isProbe reports whether the Job is the probe of a controller with these options.
func (o Options) isProbe(job *batchv1.Job) bool {
	return job.Name == probeName && job.Namespace == o.Namespace
}

func newProbe(mgr manager.Manager, o Options) *probe {
	return &probe{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), key: types.NamespacedName{Namespace: o.Namespace, Name: probeName},
		wait: probeWait, every: probeEvery, passed: make(chan struct{}),
	}
}

// Start makes the probe and looks at it until ctx ends. It's a manager.Runnable: its error ends the
// process.
func (p *probe) Start(ctx context.Context) error {
	// If this fails, the next process replaces the probe.
	defer p.removeAtEnd(ctx)
	if err := p.begin(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	close(p.passed)
	for wake.Sleep(ctx, p.every) == nil {
		if err := p.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// await returns once there's no other Job controller, as far as one can tell.
func (p *probe) await(ctx context.Context) error {
	select {
	case <-p.passed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin creates a new probe, and fails if another Job controller writes its status.
func (p *probe) begin(ctx context.Context) error {
	p.remove(ctx)
	for began := time.Now(); ; {
		if err := p.check(ctx); err != nil {
			return err
		}
		if p.warned || time.Since(began) >= p.wait || wake.Sleep(ctx, p.wait/30) != nil {
			return nil
		}
	}
}

// check fails if somebody has written the probe's status. If the probe isn't there, it creates it.
func (p *probe) check(ctx context.Context) error {
	var job batchv1.Job
	err := p.live.Get(ctx, p.key, &job)
	if apierrors.IsNotFound(err) {
		err = p.client.Create(ctx, p.job())
	}
	if err != nil {
		p.warn(ctx, err)
		return nil
	}
	p.warned = false
	if equality.Semantic.DeepEqual(job.Status, batchv1.JobStatus{}) {
		return nil
	}
	return fmt.Errorf("another Job controller runs the same Jobs: %s has written the status of Job %s, which only another one does; "+
		"run kube-controller-manager without its own (--controllers=*,-job-controller), or jobferry-worker without --drop-in", statusWriters(&job), p.key)
}

// warn says once that there's no probe. Jobs run all the same: what refuses a Job here need not
// refuse those of users.
func (p *probe) warn(ctx context.Context, err error) {
	if !p.warned && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Whether another Job controller runs the same Jobs isn't known: the probe can't be read or created", "job", p.key)
	}
	p.warned = true
}

func (p *probe) removeAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	p.remove(ctx)
}

func (p *probe) remove(ctx context.Context) {
	err := p.client.Delete(ctx, p.job(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		p.warn(ctx, err)
	}
}

// job is the probe. Its template meets the Pod Security Standard "restricted", so that the API
// server doesn't warn of it.
func (p *probe) job() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.key.Namespace, Name: p.key.Name,
			Annotations: map[string]string{"kubernetes.io/description": "jobferry-worker notices by this Job, which it doesn't run, whether another Job controller runs."},
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true), Parallelism: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{{
					Name: "none", Image: "none",
					SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					},
				}},
			}},
		},
	}
}

// statusWriters names who has written the Job's status.
func statusWriters(job *batchv1.Job) string {
	var names []string
	for _, entry := range job.ManagedFields {
		if entry.Subresource == "status" {
			names = append(names, fmt.Sprintf("%q", entry.Manager))
		}
	}
	if len(names) == 0 {
		return "somebody"
	}
	return strings.Join(names, ", ")
}
