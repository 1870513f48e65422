package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// game is one pair in the API server.
type game struct {
	pair *pair
	id   string
	seed uint64
	// at is the pair as the API server has it.
	at   *pair
	want int64

	answer scheduling.Answer
	// bound is how many of the Job's Pods the scheduler has bound, empty whether it binds one in
	// the empty cluster; not known if some were bound before.
	bound   int64
	empty   bool
	message string
	// err is why the pair couldn't be played.
	err error
}

// play plays some pairs at once. Their ids must differ from those of all others that are played.
func (s *side) play(ctx context.Context, games []*game) {
	all(games, func(g *game) error { return s.build(ctx, g) })
	ids := games[0].id
	fail(games, s.caughtUp(ctx, ids))
	all(games, func(g *game) error { return s.schedule(ctx, g) })
	var unbound []*game
	for _, g := range games {
		if g.err == nil && g.bound == 0 {
			unbound = append(unbound, g)
		}
	}
	if len(unbound) > 0 {
		all(unbound, func(g *game) error { return s.clear(ctx, g) })
		fail(unbound, s.caughtUp(ctx, ids+"-empty"))
		all(unbound, func(g *game) error { return s.scheduleOne(ctx, g) })
	}
	for _, g := range games {
		g.err = errors.Join(g.err, s.remove(ctx, g))
	}
}

// all does a step for the games that have no error yet, some at once.
func all(games []*game, step func(*game) error) {
	const atOnce = 8
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, g := range games {
		if g.err != nil {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			g.err = step(g)
			<-slots
		})
	}
	group.Wait()
}

func fail(games []*game, err error) {
	for _, g := range games {
		g.err = errors.Join(g.err, err)
	}
}

// build creates the pair's cluster, and asks for our answer.
func (s *side) build(ctx context.Context, g *game) error {
	g.at = g.pair.locate(g.id)
	namespaces := map[string]labels.Set{}
	for _, kind := range []string{own, other} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: location(g.id).name(kind), Labels: map[string]string{pairLabel: g.id, kindLabel: kind},
		}}
		made, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			made, err = s.client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		}
		if err != nil {
			return err
		}
		namespaces[made.Name] = made.Labels
	}
	for i, node := range g.at.Nodes {
		made, err := s.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		g.at.Nodes[i] = made
	}
	for i, pod := range g.at.Pods {
		made, err := s.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		g.at.Pods[i] = made
	}
	snapshot := scheduling.NewSnapshot(g.at.Nodes, g.at.Pods, namespaces)
	g.want = int64(*g.at.Job.Spec.Parallelism)
	g.answer = scheduling.Judge(snapshot, scheduling.NewJob(g.at.Job), g.want)
	return nil
}

// schedule creates the Job's Pods and counts those that are bound.
func (s *side) schedule(ctx context.Context, g *game) error {
	pods, err := s.createPods(ctx, g, g.want)
	if err != nil {
		return err
	}
	fates, err := s.decided(ctx, pods)
	for _, f := range fates {
		if f.bound {
			g.bound++
		} else {
			g.message = f.message
		}
	}
	return err
}

func (s *side) createPods(ctx context.Context, g *game, count int64) ([]*corev1.Pod, error) {
	template := &g.at.Job.Spec.Template
	var pods []*corev1.Pod
	for range count {
		pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
		pod.GenerateName = "job-"
		pod.Labels = labels.Merge(template.Labels, labels.Set{roleLabel: "job"})
		made, err := s.client.CoreV1().Pods(g.at.Job.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		pods = append(pods, made)
	}
	return pods, nil
}

// clear makes the cluster what it is at its best: the Pods that end by themselves have ended, the
// nodes are back.
func (s *side) clear(ctx context.Context, g *game) error {
	jobs := metav1.ListOptions{LabelSelector: roleLabel}
	if err := s.client.CoreV1().Pods(g.at.Job.Namespace).DeleteCollection(ctx, atOnce, jobs); err != nil {
		return err
	}
	for _, pod := range g.at.Pods {
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			continue
		}
		if err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, atOnce); err != nil {
			return err
		}
	}
	for _, node := range g.at.Nodes {
		if !restore(node) {
			continue
		}
		if _, err := s.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// restore reports whether the node was cordoned or troubled.
func restore(node *corev1.Node) bool {
	changed := node.Spec.Unschedulable
	node.Spec.Unschedulable = false
	var taints []corev1.Taint
	for _, t := range node.Spec.Taints {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			changed = true
			continue
		}
		taints = append(taints, t)
	}
	node.Spec.Taints = taints
	return changed
}

func (s *side) scheduleOne(ctx context.Context, g *game) error {
	pods, err := s.createPods(ctx, g, 1)
	if err != nil {
		return err
	}
	fates, err := s.decided(ctx, pods)
	g.empty = fates[0].bound
	return err
}

var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

// remove takes the pair's objects away, but for the namespaces, which the next pair uses.
func (s *side) remove(ctx context.Context, g *game) error {
	var errs []error
	for _, kind := range []string{own, other} {
		errs = append(errs, s.client.CoreV1().Pods(location(g.id).name(kind)).DeleteCollection(ctx, atOnce, metav1.ListOptions{}))
	}
	errs = append(errs, s.client.CoreV1().Nodes().DeleteCollection(ctx, atOnce, metav1.ListOptions{LabelSelector: pairLabel + "=" + g.id}))
	return errors.Join(errs...)
}

// difference is empty where the scheduler agrees.
func (g *game) difference() difference {
	switch {
	case g.answer.Verdict == scheduling.Never && (g.bound > 0 || g.empty):
		return falseNever
	case g.answer.Now >= g.want && g.bound < g.want:
		return falseNow
	case g.answer.Now < g.want && g.bound >= g.want:
		return tooCareful
	case g.answer.Verdict != scheduling.Never && g.bound == 0 && !g.empty:
		return unproven
	default:
		return ""
	}
}

// difference between our answer and the scheduler's deeds.
type difference string

const (
	falseNever difference = "we say never, and the scheduler binds Pods"
	falseNow   difference = "we say that all fit now, and the scheduler doesn't bind all"
	tooCareful difference = "we say that fewer fit now, and the scheduler binds all"
	unproven   difference = "we say that it fits later, and the scheduler binds none in the empty cluster"
)

func (g *game) String() string {
	return fmt.Sprintf("ours: %v, %d of %d Pods now, %d idle, reasons %v\nscheduler: bound %d, empty cluster %v: %s\n%s",
		g.answer.Verdict, g.answer.Now, g.want, g.answer.Idle, g.answer.Reasons, g.bound, g.empty, g.message, g.pair)
}
