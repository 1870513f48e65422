package real

import (
	"context"
	"errors"
	"strings"

	"github.com/jobferry/jobferry/e2e/groups/jobsettest"
)

// JobSet is what the story needs of JobSet's.
var JobSet = Step{What: "JobSet's manager", Make: func(_ *Materials, ctx context.Context) error { return jobsettest.Prepare(ctx) }}

// pair is a driver that gets what each of its workers has done, by their names.
const pair = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: pair-WORKER
spec:
  replicatedJobs:
  - name: workers
    replicas: 3
    template:
      metadata:
        annotations: {jobferry.dev/cluster-selector: name=WORKER}
      spec:
        template:
          spec:
            containers:
            - name: main
              image: docker.io/library/busybox:1.36
              command: [sh, -c, 'echo "work of $(hostname)" | nc -l -p 4000']
  - name: driver
    dependsOn: [{name: workers, status: Ready}]
    template:
      metadata:
        annotations: {jobferry.dev/cluster-selector: name=WORKER}
      spec:
        template:
          spec:
            containers:
            - name: main
              image: docker.io/library/busybox:1.36
              command: [sh, -c, 'for i in 0 1 2; do until nc pair-WORKER-workers-$i-0.pair-WORKER 4000 </dev/null; do sleep 1; done; done']
`

// jobSets has JobSet's real manager on the hub, and nothing of it in the workers.
func (s *Story) jobSets(ctx context.Context) error {
	if err := s.step(ctx, "JobSet's manager, beside the hub", func(ctx context.Context) error {
		_, err := jobsettest.Start(ctx, s.clusters[Hub])
		return err
	}); err != nil {
		return err
	}
	err := s.inBoth(ctx, "Pods of a JobSet find each other by name", func(ctx context.Context, worker string) error {
		if _, err := s.run(ctx, strings.ReplaceAll(pair, "WORKER", worker), "kubectl", "create", "-f", "-"); err != nil {
			return err
		}
		if err := s.all("kubectl wait --timeout=2m --for=condition=Completed jobset/pair-" + worker)(ctx); err != nil {
			return err
		}
		var errs []error
		for _, host := range []string{"-workers-0-0", "-workers-1-0", "-workers-2-0"} {
			errs = append(errs, s.shows(ctx, "work of pair-"+worker+host, "kubectl jobferry logs pair-"+worker+"-driver-0"))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	return s.Do(ctx, "the JobSets are deleted", "kubectl delete jobsets --all --timeout=2m")
}
