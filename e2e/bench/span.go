package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/measure"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

const (
	wholeNamespace = "bench-whole"
	smallNamespace = "bench-small"
	spanNamespace  = "bench-span"
	spanJob        = "sweep"
)

// span is one run of the benchmark of one Job over several workers.
type span struct {
	options                        SpanOptions
	managerProgram, controllerFile string
	fleet                          *fleet
	manager                        *manager
	result                         report.Span
}

// RunSpan runs one Job in one cluster, and then over several workers, of which one is drained and
// one is lost on the way. They run by turns: all share this machine.
func RunSpan(ctx context.Context, o SpanOptions) (*report.Span, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &span{options: o, result: report.Span{
		Indexes: o.Indexes, Workers: o.Workers, Parallelism: o.Parallelism, Room: o.room(), RunFor: o.RunFor,
		LostAfter: o.LostAfter, Small: o.Small, Machine: measure.Machine(),
	}}
	err := inFolder(func(dir string) error { return s.inBoth(ctx, dir) })
	return &s.result, err
}

// inBoth runs the Job in one cluster, if that is wanted, and over the workers.
func (s *span) inBoth(ctx context.Context, dir string) (err error) {
	if s.managerProgram, s.controllerFile, err = spanPrograms(ctx, s.options, dir); err != nil {
		return err
	}
	if s.options.Whole {
		if s.result.Whole, err = s.inOne(ctx); err != nil {
			return fmt.Errorf("in one cluster: %w", err)
		}
	}
	if err := s.overWorkers(ctx, dir); err != nil {
		return fmt.Errorf("over %d workers: %w", s.options.Workers, err)
	}
	return nil
}

// inOne runs the Job in a cluster with the room of all workers, without Jobferry's manager.
func (s *span) inOne(ctx context.Context) (_ *report.Sweep, err error) {
	o := s.options
	o.Progress("starting one cluster with room for %d Pods", o.Workers*o.room())
	if s.fleet, err = startEmbedded(ctx, s.controllerFile, o, nil, embeddedCluster(o, "whole", o.Workers*o.room())); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.fleet.stop()) }()
	return s.sweep(ctx, s.fleet.workers[0], wholeNamespace, o.Indexes, nil, func(j *batchv1.Job) {
		j.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByWorker)
	})
}

// overWorkers runs the Job over the workers.
func (s *span) overWorkers(ctx context.Context, dir string) (err error) {
	o := s.options
	o.Progress("starting a hub and %d workers with room for %d Pods each", o.Workers, o.room())
	var workers []rig.Options
	for n := range o.Workers {
		workers = append(workers, embeddedCluster(o, fmt.Sprintf("worker-%d", n+1), o.room()))
	}
	if s.fleet, err = startEmbedded(ctx, s.controllerFile, o, []rig.Options{{Name: "hub", Audit: true}}, workers...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.fleet.stop()) }()
	product, err := install(ctx, s.fleet, s.managerProgram, dir)
	if err != nil {
		return err
	}
	if s.manager, err = startManager(product, "", o.managerFlags()); err != nil {
		return err
	}
	return s.manager.whileRuns(ctx, s.sweeps)
}

// sweeps runs the small Job, and then the Job with its faults.
func (s *span) sweeps(ctx context.Context) error {
	if err := awaitWorkers(ctx, s.fleet); err != nil {
		return err
	}
	o := s.options
	if o.Small > 0 {
		small, err := s.sweep(ctx, s.fleet.hub, smallNamespace, o.Small, nil, spanning)
		if err != nil {
			return fmt.Errorf("the Job of %d: %w", o.Small, err)
		}
		s.result.SmallMemory = small.Memory
	}
	before, err := s.manager.Usage()
	if err != nil {
		return err
	}
	sweep, err := s.sweep(ctx, s.fleet.hub, spanNamespace, o.Indexes, s.faults, spanning)
	if err != nil {
		return err
	}
	after, err := s.manager.Usage()
	if err != nil {
		return err
	}
	s.result.Spanned, s.result.ManagerCPU = *sweep, after.CPU-before.CPU
	return s.countRequests()
}

// spanning gives a Job to Jobferry, for all workers.
func spanning(j *batchv1.Job) {
	dispatched(j)
	j.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll}
}

// sweep runs a Job of so many indexes to its end, and counts.
func (s *span) sweep(ctx context.Context, in *site, namespace string, n int, faults func(context.Context, *spanView) error, option option) (*report.Sweep, error) {
	if err := makeNamespace(ctx, namespace, s.fleet.all()...); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	view, err := watchSpan(watching, in, s.fleet.workers, namespace)
	if err != nil {
		return nil, err
	}
	cpu, err := s.fleet.cpu()
	if err != nil {
		return nil, err
	}
	memory := s.sampleMemory(watching)
	s.options.Progress("%s: a Job of %d indexes", namespace, n)
	began := time.Now()
	if _, err := in.client.BatchV1().Jobs(namespace).Create(ctx, s.job(namespace, n, option), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	go s.tellProgress(watching, view, namespace)
	if faults != nil {
		if err := faults(ctx, view); err != nil {
			return nil, err
		}
	}
	ended, err := view.await(ctx, hasEnded)
	if err != nil {
		return nil, err
	}
	result := &report.Sweep{Makespan: time.Since(began), Memory: memory()}
	if measure.StageOf(&ended.Status) != measure.Complete {
		return nil, fmt.Errorf("the Job has failed: %+v", ended.Status)
	}
	after, err := s.fleet.cpu()
	if err != nil {
		return nil, err
	}
	result.CPU = after.Since(cpu)
	s.countPods(view, ended, n, result)
	return result, nil
}

// job is the Job of so many indexes.
func (s *span) job(namespace string, n int, option option) *batchv1.Job {
	return newJob(namespace, spanJob, option, func(j *batchv1.Job) {
		j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		j.Spec.Completions, j.Spec.Parallelism = ptr.To(int32(n)), ptr.To(int32(min(n, s.options.Parallelism)))
		j.Spec.BackoffLimit = ptr.To(int32(n))
		// A Pod that is stopped may still succeed. By default it has been counted as failed by then,
		// in one cluster too, and its index would complete twice.
		j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	})
}

// countPods counts what was seen. What a lost worker did until its fence closed is in, as that is
// before the hub gave its indexes to others.
func (s *span) countPods(view *spanView, ended *batchv1.Job, n int, result *report.Sweep) {
	result.Indexes = view.pods.Count(n)
	view.mu.Lock()
	defer view.mu.Unlock()
	result.Divisions, result.Moved, result.Missed = view.divisions, view.moved, view.missed
	result.Shown = intervals.ParseLenient(ended.Status.CompletedIndexes, n).Len()
}

// countRequests counts those of the manager about the Job.
func (s *span) countRequests() error {
	about := audit.In(spanNamespace)
	hub, err := requestsOf(managerUser, s.fleet.hub)
	if err != nil {
		return err
	}
	workers, err := requestsOf(managerUser, s.fleet.workers...)
	if err != nil {
		return err
	}
	s.result.Requests = append(audit.Tally("hub", audit.Select(hub, about)), audit.Tally("workers", audit.Select(workers, about))...)
	return nil
}
