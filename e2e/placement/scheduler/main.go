// Command scheduler is kube-scheduler's own code, without a cluster around it: it gets a worker and
// Pods that are to be scheduled, one after the other, and answers how many were bound. The Pods go
// through what an API server does to new Pods. It's built once per Kubernetes release, from that
// release's own packages.
//
// It reads requests from its standard input and writes an answer to each to its standard output,
// all of them JSON.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
)

// request is one worker, at two moments, with the Pods of one Job.
type request struct {
	objects
	namespaceLimits
	classObjects
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate
	// Nodes as they are now.
	Nodes []*corev1.Node
	// Restored are those of them that were cordoned or troubled, when they are back.
	Restored []*corev1.Node
	// Pods that run on them.
	Pods []*corev1.Pod
	// New Pods to schedule.
	New []*corev1.Pod
	// Group: these are Pods of several Jobs. Those that find no node are tried again when others have
	// been bound.
	Group bool
}

// answer says what became of the new Pods.
type answer struct {
	// Pods that run, as a client sees them.
	Pods []*corev1.Pod `json:",omitempty"`
	// ResourceClaims that were there before, with the UIDs of these Pods.
	ResourceClaims []*resourcev1.ResourceClaim `json:",omitempty"`
	// namespaceLimits with their defaults and status.
	namespaceLimits
	// Bound of the new Pods, in the cluster as it is.
	Bound int64
	// Empty: one of them is bound once the Pods that end by themselves have ended and the nodes are
	// restored. It's only tried if none was bound before.
	Empty bool
	// Found are the names of the Pods of a group that were bound, at least in the empty cluster.
	Found []string `json:",omitempty"`
	// Message of the scheduler about the last Pod that it found no node for.
	Message string
	// Error is why nothing was tried.
	Error string `json:",omitempty"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := errors.Join(preemptAtOnce(), serve(os.Stdin, os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		a, err := handle(context.Background(), &r)
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
}

func handle(ctx context.Context, r *request) (answer, error) {
	a, err := r.prepare()
	if refusal, is := errors.AsType[refused](err); is {
		a.Message = refusal.Error()
		return a, nil
	}
	if err != nil || len(r.New) == 0 {
		return a, err
	}
	current, refusal, err := r.admit(r.New, scene{r.Nodes, r.Pods, nil, r.Preemption, r.Group, nil, r.objects})
	if err != nil {
		return a, err
	}
	a.Bound, a.Message, err = current.schedule(ctx)
	a.Message = cmp.Or(a.Message, refusal)
	if r.Group && err == nil {
		err := r.findEach(ctx, current, &a)
		return a, err
	}
	if err != nil || a.Bound > 0 {
		return a, err
	}
	empty, err := r.empty(r.New[:1])
	if err != nil {
		return a, err
	}
	bound, _, err := empty.schedule(ctx)
	a.Empty = bound > 0
	return a, err
}

// prepare creates all objects, and answers with those that there were before.
func (r *request) prepare() (answer, error) {
	var a answer
	classes, err := r.classObjects.plugins()
	if err != nil {
		return a, err
	}
	limits, err := r.limitRanger()
	if err := errors.Join(err, create(r.Pods, classes), r.used(r.Pods, &r.objects)); err != nil {
		return a, err
	}
	reserve(r.ResourceClaims, r.Pods)
	r.identify()
	a.Pods, a.ResourceClaims = r.Pods, r.ResourceClaims
	a.LimitRanges = r.LimitRanges
	for _, q := range r.ResourceQuotas {
		a.ResourceQuotas = append(a.ResourceQuotas, q.DeepCopy())
	}
	if err := create(r.New, slices.Concat(limits, classes)); err != nil {
		if len(limits)+len(classes) > 0 {
			err = refused{err} // such as a request above the limit that was filled in
		}
		return a, err
	}
	return a, nil
}

// admit adds to a scene the Pods that the quotas leave room for, then the claims that are made for
// these. It returns why others were refused.
func (r *request) admit(pods []*corev1.Pod, sc scene) (_ *scene, refusal string, err error) {
	by, err := r.quotaAdmission(&sc.objects)
	if err != nil {
		return nil, "", err
	}
	if sc.new, err = by.pods(pods); err != nil {
		return nil, "", err
	}
	for _, pod := range sc.new {
		volumes, err := admittedClaims(by, claimsOfVolumes(pod), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
			corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"))
		if err != nil {
			return nil, "", err
		}
		claims, err := admittedClaims(by, claimsOf(pod, r.ResourceClaimTemplates), resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"),
			resourcev1.SchemeGroupVersion.WithResource("resourceclaims"))
		if err != nil {
			return nil, "", err
		}
		tell(pod, claims)
		sc.PersistentVolumeClaims, sc.ResourceClaims = slices.Concat(sc.PersistentVolumeClaims, volumes), slices.Concat(sc.ResourceClaims, claims)
	}
	return &sc, by.refusal, nil
}

// empty is the worker at its best, with some new Pods.
func (r *request) empty(pods []*corev1.Pod) (*scene, error) {
	left := lasting(r.Pods)
	o := r.objects
	o.ResourceClaims = deallocated(r.ResourceClaims, left)
	if err := r.used(left, &o); err != nil {
		return nil, err
	}
	s, _, err := r.admit(pods, scene{restored(r), left, nil, r.Preemption, r.Group, nil, o})
	return s, err
}

// restored are all nodes, when those that were cordoned or troubled are back.
func restored(r *request) []*corev1.Node {
	back := map[string]*corev1.Node{}
	for _, n := range r.Restored {
		back[n.Name] = n
	}
	nodes := make([]*corev1.Node, 0, len(r.Nodes))
	for _, n := range r.Nodes {
		if back[n.Name] != nil {
			n = back[n.Name]
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// lasting are the Pods that don't end by themselves.
func lasting(pods []*corev1.Pod) []*corev1.Pod {
	var last []*corev1.Pod
	for _, p := range pods {
		if p.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			last = append(last, p)
		}
	}
	return last
}
