package real

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// visited has a server, and a process that says what it hears until its input ends.
var visited = strings.ReplaceAll(served, "served-", "shown-")

// shown uses a Job's Pods on the hub as on any cluster, by kubectl without the plugin.
func (s *Story) shown(ctx context.Context) error {
	if err := s.Do(ctx, "a namespace whose Pods the hub shows", "kubectl label namespace team jobferry.dev/pods=enabled"); err != nil {
		return err
	}
	return s.inBoth(ctx, "kubectl delete, wait, exec, cp, port-forward, attach and logs, of Pods on the hub", func(ctx context.Context, worker string) error {
		job := "shown-" + worker
		if err := s.start(ctx, visited, worker, job); err != nil {
			return err
		}
		former, err := s.podOnHub(ctx, job)
		if err != nil {
			return err
		}
		if err := s.all("kubectl delete --timeout=2m --grace-period=1 " + former)(ctx); err != nil {
			return err
		}
		if err := s.isReady(ctx, job); err != nil {
			return err
		}
		pod, err := s.podOnHub(ctx, job)
		if err == nil && pod == former {
			err = fmt.Errorf("%s is there again", former)
		}
		if err != nil {
			return err
		}
		said := make(chan error, 1)
		go func() { said <- s.shows(ctx, "heard hello", "kubectl logs -f job/"+job) }()
		return errors.Join(s.use(ctx, "kubectl", strings.TrimPrefix(pod, "pod/")), <-said,
			s.all("kubectl wait --timeout=2m --for=condition=complete job/"+job, "kubectl wait --timeout=1m --for=jsonpath={.status.phase}=Succeeded "+pod)(ctx))
	})
}

// podOnHub waits until the hub shows the Pod of a Job that runs, and returns it as pod/NAME.
func (s *Story) podOnHub(ctx context.Context, job string) (string, error) {
	selector := "-l batch.kubernetes.io/job-name=" + job
	if err := s.all("kubectl wait pod --for=create --timeout=1m "+selector, "kubectl wait pod --for=condition=Ready --timeout=1m "+selector)(ctx); err != nil {
		return "", err
	}
	out, err := s.run(ctx, "", strings.Fields("kubectl get pods -o name --field-selector status.phase=Running "+selector)...)
	return strings.TrimSpace(out), err
}
