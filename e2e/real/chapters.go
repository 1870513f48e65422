package real

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/rig"
)

// Install is the admin's work on the hub.
func (s *Story) Install(ctx context.Context) error {
	return s.Do(ctx, "helm install of the manager, as Pods under the Pod Security Standard restricted",
		"kubectl create namespace jobferry-system",
		"kubectl label namespace jobferry-system pod-security.kubernetes.io/enforce=restricted",
		"helm install jobferry charts/jobferry --namespace jobferry-system --wait --timeout 2m --set pods.enabled=true,carry.kinds={Service} "+ImageValues,
	)
}

// ImageValues are the charts' values for the image that Prepare has built.
const ImageValues = "--set image.repository=" + imageRepository + ",image.tag=" + imageTag + ",image.pullPolicy=Never"

// RegisterWest makes a worker of the cluster with the built-in Job controller.
func (s *Story) RegisterWest(ctx context.Context) error {
	return s.Do(ctx, "kubectl jobferry register west",
		"kubectl jobferry register west --worker-context west --all-namespaces --labels name=west --carry Service "+podAccess)
}

// podAccess is what users can do with Pods through the hub, which shows them: all.
const podAccess = "--pod-access logs,exec,delete"

// UnregisterWest undoes RegisterWest.
func (s *Story) UnregisterWest(ctx context.Context) error {
	return s.Do(ctx, "kubectl jobferry unregister west", "kubectl jobferry unregister west --worker-context west --yes")
}

// RegisterEdge makes a worker of the other one, and installs the embedded Job controller there.
func (s *Story) RegisterEdge(ctx context.Context) error {
	return s.Do(ctx, "kubectl jobferry register edge, and helm install of the embedded controller there",
		"kubectl jobferry register edge --worker-context edge --all-namespaces --labels name=edge --job-controller Embedded --carry Service "+podAccess,
		"helm --kube-context edge install jobferry-worker charts/jobferry-worker --namespace jobferry-system --wait --timeout 2m "+ImageValues,
	)
}

// UnregisterEdge undoes RegisterEdge.
func (s *Story) UnregisterEdge(ctx context.Context) error {
	return s.Do(ctx, "kubectl jobferry unregister edge, and helm uninstall there",
		"kubectl jobferry unregister edge --worker-context edge --yes",
		"helm --kube-context edge uninstall jobferry-worker --namespace jobferry-system --wait",
	)
}

//go:embed manifests/jobs.yaml.tmpl
var jobs string

var jobsTemplate = template.Must(template.New("jobs").Parse(jobs))

// submit is a user's work.
func (s *Story) submit(ctx context.Context) error {
	if err := s.step(ctx, "a namespace whose Jobs are dispatched", s.all(
		"kubectl create namespace team",
		"kubectl label namespace team jobferry.dev/dispatch=enabled",
		"kubectl config set-context hub --namespace team",
	)); err != nil {
		return err
	}
	return s.inBoth(ctx, "ordinary Jobs are created on the hub", func(ctx context.Context, worker string) error {
		var manifest bytes.Buffer
		if err := jobsTemplate.Execute(&manifest, worker); err != nil {
			return err
		}
		_, err := s.run(ctx, manifest.String(), "kubectl", "create", "-f", "-")
		return err
	})
}

// ends waits for the Jobs' ends on the hub, and looks at what they ended with.
func (s *Story) ends(ctx context.Context) error {
	for _, end := range []struct{ job, condition, what, path, want string }{
		{"pi", "complete", "a Job in busybox is Complete", "{.status.succeeded}", "1"},
		{"exit42", "failed", "exit code 42 fails the Job by its podFailurePolicy", "{.status.conditions[?(@.type=='Failed')].reason}", "PodFailurePolicy"},
		{"oom", "failed", "a Job whose container is OOM-killed has failed", "{.status.conditions[?(@.type=='Failed')].reason}", "BackoffLimitExceeded"},
		{"indexed", "complete", "an Indexed Job is Complete", "{.status.completedIndexes}", "0-2"},
	} {
		err := s.inBoth(ctx, end.what, func(ctx context.Context, worker string) error {
			job := "job/" + end.job + "-" + worker
			if err := s.all("kubectl wait --timeout=2m --for=condition=" + end.condition + " " + job)(ctx); err != nil {
				return err
			}
			out, err := s.run(ctx, "", "kubectl", "get", job, "-o", "jsonpath="+end.path)
			if err == nil && out != end.want {
				err = fmt.Errorf("%s: %s is %q, want %q", job, end.path, out, end.want)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := s.inBoth(ctx, "the Pod that was OOM-killed is seen at the hub", func(ctx context.Context, worker string) error {
		return s.shows(ctx, "OOMKilled", "kubectl jobferry pods oom-"+worker+" -o json")
	}); err != nil {
		return err
	}
	err := s.inBoth(ctx, "an image that can't be pulled is told by an event on the hub, at once", func(ctx context.Context, worker string) error {
		job := "misspelled-" + worker
		told, err := s.told(ctx, job, "PodsWaiting", "1 Pods can't be started: container main: ")
		if err != nil {
			return err
		}
		said, err := s.failedToPull(ctx, worker, job)
		if after := told.Sub(said); err == nil && after > atOnce {
			err = fmt.Errorf("it was told %s after the kubelet's report, want at most %s", after, atOnce)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.inBoth(ctx, "a ConfigMap that isn't there to be mounted is told, too", func(ctx context.Context, worker string) error {
		_, err := s.told(ctx, "unmounted-"+worker, "PodsWaiting", `configmap "nowhere" not found`)
		return err
	})
}

// atOnce is how soon a kubelet's report is told on the hub: 5 s, and what is cut off the times of
// its events.
const atOnce = 6 * time.Second

// told waits for an event about a Job on the hub, and returns its time.
func (s *Story) told(ctx context.Context, job, reason, text string) (time.Time, error) {
	found, err := rig.Objects(s.clusters[Hub].Client().EventsV1().RESTClient(), "events", "team").Until(ctx, func(o runtime.Object) bool {
		e, ok := o.(*eventsv1.Event)
		return ok && e.Regarding.Name == job && e.Reason == reason && strings.Contains(e.Note, text)
	})
	if err != nil {
		return time.Time{}, err
	}
	return found.(*eventsv1.Event).EventTime.Time, nil
}

// failedToPull is when a worker's kubelet first failed to pull the image of a Job's Pod.
func (s *Story) failedToPull(ctx context.Context, worker, job string) (time.Time, error) {
	found, err := rig.Objects(s.clusters[worker].Client().CoreV1().RESTClient(), "events", "team").Until(ctx, func(o runtime.Object) bool {
		e, ok := o.(*corev1.Event)
		return ok && strings.HasPrefix(e.InvolvedObject.Name, job+"-") && e.Reason == "Failed"
	})
	if err != nil {
		return time.Time{}, err
	}
	return found.(*corev1.Event).FirstTimestamp.Time, nil
}

// pi's digits, as far as bc's last one is right.
const pi = "3.14159265358979323846264338327950288419"

// logs are read at the hub: those of what has ended, and live.
func (s *Story) logs(ctx context.Context) error {
	err := s.inBoth(ctx, "kubectl jobferry logs", func(ctx context.Context, worker string) error {
		if err := s.shows(ctx, pi, "kubectl jobferry logs pi-"+worker); err != nil {
			return err
		}
		return s.shows(ctx, "index=2 host=indexed-"+worker+"-2", "kubectl jobferry logs indexed-"+worker+" --index 2")
	})
	if err != nil {
		return err
	}
	return s.inBoth(ctx, "kubectl jobferry logs -f follows a Pod to its end", func(ctx context.Context, worker string) error {
		job := "follow-" + worker
		if err := s.start(ctx, followed, worker, job); err != nil {
			return err
		}
		return s.shows(ctx, "line 5", "kubectl jobferry logs -f "+job)
	})
}

const followed = `
apiVersion: batch/v1
kind: Job
metadata:
  name: follow-WORKER
  annotations: {jobferry.dev/cluster-selector: name=WORKER}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: docker.io/library/busybox:1.36
        command: [sh, -c, 'for i in 1 2 3 4 5; do echo line $i; sleep 1; done']
`

// suspend ends Pods as Kubernetes does: with time for them to save what they have.
func (s *Story) suspend(ctx context.Context) error {
	err := s.inBoth(ctx, "kubectl jobferry exec", func(ctx context.Context, worker string) error {
		job := "graceful-" + worker
		if err := s.isReady(ctx, job); err != nil {
			return err
		}
		return s.shows(ctx, job, "kubectl jobferry exec "+job+" -- hostname")
	})
	if err != nil {
		return err
	}
	return s.inBoth(ctx, "a Job that is suspended on the hub ends its Pod gracefully", func(ctx context.Context, worker string) error {
		job, saved := "graceful-"+worker, make(chan error, 1)
		go func() { saved <- s.saved(ctx, worker, job) }()
		if _, err := s.run(ctx, "", "kubectl", "patch", "job", job, "--patch", `{"spec":{"suspend":true}}`); err != nil {
			return err
		}
		if err := <-saved; err != nil {
			return err
		}
		return s.all("kubectl wait --timeout=2m --for=condition=suspended job/" + job)(ctx)
	})
}

// saved waits until the Pod of a Job has ended with what its handler of SIGTERM writes.
func (s *Story) saved(ctx context.Context, worker, job string) error {
	_, err := rig.Objects(s.clusters[worker].Client().CoreV1().RESTClient(), "pods", "team").Until(ctx, func(o runtime.Object) bool {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.Labels["batch.kubernetes.io/job-name"] != job || len(pod.Status.ContainerStatuses) == 0 {
			return false
		}
		end := pod.Status.ContainerStatuses[0].State.Terminated
		return end != nil && end.ExitCode == 0 && strings.TrimSpace(end.Message) == "saved"
	})
	return err
}

// remove takes everything away again.
func (s *Story) remove(ctx context.Context) error {
	if err := s.step(ctx, "all Jobs are deleted, and their mirrors with them", s.all("kubectl delete jobs --all --timeout=2m")); err != nil {
		return err
	}
	if err := s.inBoth(ctx, "no Job and no Pod is left", func(ctx context.Context, worker string) error {
		out, err := s.run(ctx, "", "kubectl", "--context", worker, "get", "jobs,pods", "-n", "team", "-o", "name")
		if err != nil || out == "" {
			return err
		}
		// A kubelet that is pulling an image of a Pod looks after that before it removes the Pod.
		_, err = s.run(ctx, "", append(strings.Fields("kubectl --context "+worker+" wait -n team --for=delete --timeout=2m"), strings.Fields(out)...)...)
		return err
	}); err != nil {
		return err
	}
	if err := errors.Join(s.UnregisterWest(ctx), s.UnregisterEdge(ctx)); err != nil {
		return err
	}
	return s.Do(ctx, "helm uninstall of the manager", "helm uninstall jobferry --namespace jobferry-system --wait")
}
