package main

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// play plays some pairs at once. Their ids must differ from those of all others that are played.
func (s *cluster) play(ctx context.Context, games []*game) {
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
func (s *cluster) build(ctx context.Context, g *game) error {
	g.at = g.pair.locate(g.id)
	var namespaces []*corev1.Namespace
	for _, ns := range location(g.id).namespaces() {
		made, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			made, err = s.client.CoreV1().Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		}
		if err != nil {
			return err
		}
		namespaces = append(namespaces, made)
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
	g.ask(namespaces)
	return nil
}

// schedule creates the Job's Pods and counts those that are bound.
func (s *cluster) schedule(ctx context.Context, g *game) error {
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

func (s *cluster) createPods(ctx context.Context, g *game, count int64) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for range count {
		pod := podOf(g.at.Job)
		pod.Labels = labels.Merge(pod.Labels, labels.Set{roleLabel: "job"})
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
func (s *cluster) clear(ctx context.Context, g *game) error {
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

func (s *cluster) scheduleOne(ctx context.Context, g *game) error {
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
func (s *cluster) remove(ctx context.Context, g *game) error {
	var errs []error
	for _, kind := range []string{own, other} {
		errs = append(errs, s.client.CoreV1().Pods(location(g.id).name(kind)).DeleteCollection(ctx, atOnce, metav1.ListOptions{}))
	}
	errs = append(errs, s.client.CoreV1().Nodes().DeleteCollection(ctx, atOnce, metav1.ListOptions{LabelSelector: pairLabel + "=" + g.id}))
	return errors.Join(errs...)
}
