package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		return errors.Join(err, s.use(ctx, worker, job, pod))
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

// use copies a file into a Pod's container, gets it by a port that is forwarded, copies it back,
// talks to the process, and reads what that has said.
func (s *Story) use(ctx context.Context, worker, job, pod string) error {
	name := strings.TrimPrefix(pod, "pod/")
	page, copied := filepath.Join(s.materials.Dir, "shown-"+worker+".html"), filepath.Join(s.materials.Dir, "shown-back-"+worker+".html")
	if err := os.WriteFile(page, []byte("a page for "+worker), 0o600); err != nil {
		return err
	}
	if err := s.all("kubectl cp "+page+" "+name+":/www/", "kubectl exec "+name+" -- chmod 644 /www/"+filepath.Base(page),
		"kubectl cp "+name+":/www/"+filepath.Base(page)+" "+copied)(ctx); err != nil {
		return err
	}
	back, err := os.ReadFile(copied)
	if err == nil && string(back) != "a page for "+worker {
		err = fmt.Errorf("cp brings back %q", back)
	}
	if err := errors.Join(err, s.forwarded(ctx, "kubectl port-forward "+name, filepath.Base(page), "a page for "+worker)); err != nil {
		return err
	}
	said := make(chan error, 1)
	go func() { said <- s.shows(ctx, "heard hello", "kubectl logs -f job/"+job) }()
	out, err := s.run(ctx, "hello\n", "kubectl", "attach", name, "-i", "-q")
	if err == nil && !strings.Contains(out, "heard hello") {
		err = fmt.Errorf("attach: %q", out)
	}
	return errors.Join(err, <-said, s.all("kubectl wait --timeout=2m --for=condition=complete job/"+job,
		"kubectl wait --timeout=1m --for=jsonpath={.status.phase}=Succeeded "+pod)(ctx))
}
