package real

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/jobferry/jobferry/e2e/groups/jobsettest"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// JobSet is what the story needs of JobSet's.
var JobSet = Step{What: "JobSet's manager", Make: func(_ *Materials, ctx context.Context) error { return jobsettest.Prepare(ctx) }}

// InstallJobSet has JobSet's real manager on the hub, and nothing of it in the workers.
func (s *Story) InstallJobSet(ctx context.Context) error {
	return s.step(ctx, "JobSet's manager, beside the hub", func(ctx context.Context) error {
		_, err := jobsettest.Start(ctx, s.clusters[Hub])
		return err
	})
}

//go:embed manifests/jobset.yaml.tmpl
var jobSet string

var jobSetTemplate = template.Must(template.New("jobset").Parse(jobSet))

// pair is a JobSet of a driver and its workers.
type pair struct {
	Name string
	// Worker is where it runs. Without it, that's for Jobferry to choose.
	Worker string
	// First and Last are commands of the driver's shell, before and after its work.
	First, Last string
}

// jobs are the names of its Jobs.
func (p pair) jobs() []string {
	return []string{p.Name + "-driver-0", p.Name + "-workers-0", p.Name + "-workers-1", p.Name + "-workers-2"}
}

// jobSets run in each worker, and start again after a failure.
func (s *Story) jobSets(ctx context.Context) error {
	if err := s.inBoth(ctx, "Pods of a JobSet find each other by name", func(ctx context.Context, worker string) error {
		p := pair{Name: "pair-" + worker, Worker: worker}
		if err := s.create(ctx, p); err != nil {
			return err
		}
		return errors.Join(s.completes(ctx, p, worker, 0), s.lacksJobSet(ctx, worker))
	}); err != nil {
		return err
	}
	if err := s.step(ctx, "a JobSet whose driver fails starts all again, and is Completed", func(ctx context.Context) error {
		p := pair{Name: "again", Last: "test $ATTEMPT = 1"}
		if err := s.create(ctx, p); err != nil {
			return err
		}
		return s.completes(ctx, p, "", 1)
	}); err != nil {
		return err
	}
	return s.Do(ctx, "the JobSets are deleted", "kubectl delete jobsets --all --timeout=2m")
}

// loss stops a worker in the middle of a JobSet, which is complete in the other one.
func (s *Story) loss(ctx context.Context) error {
	p := pair{Name: "moved", First: "test $NODE != " + NodeName(West) + " || sleep 3600"}
	driver := "job/" + p.jobs()[0]
	if err := s.step(ctx, "a JobSet that could run in edge, too, runs in west", func(ctx context.Context) error {
		if err := s.all(`kubectl patch workercluster west --type=merge --patch {"spec":{"workerLostTimeout":"10s"}}`, "kubectl jobferry cordon edge")(ctx); err != nil {
			return err
		}
		if err := s.create(ctx, p); err != nil {
			return err
		}
		return s.all("kubectl wait --for=create --timeout=2m "+driver, "kubectl wait --for=jsonpath={.status.ready}=1 --timeout=2m "+driver,
			"kubectl jobferry uncordon edge")(ctx)
	}); err != nil {
		return err
	}
	server := s.clusters[West].Component(binaries.APIServer)
	if err := s.step(ctx, "west is lost, and the JobSet is Completed in edge", func(ctx context.Context) error {
		if err := server.Kill(); err != nil {
			return err
		}
		return s.completes(ctx, p, Edge, 0)
	}); err != nil {
		return err
	}
	return s.step(ctx, "west is back, and keeps nothing of the JobSet", func(ctx context.Context) error {
		if err := server.Start(); err != nil {
			return err
		}
		return errors.Join(s.clusters[West].Ready(ctx), s.all(
			"kubectl wait --for=condition=Ready --timeout=2m workercluster/west",
			"kubectl --context west wait -n team --for=delete --timeout=2m job/"+strings.Join(p.jobs(), " job/"),
			"kubectl delete jobsets --all --timeout=2m")(ctx))
	})
}

func (s *Story) create(ctx context.Context, p pair) error {
	var manifest bytes.Buffer
	if err := jobSetTemplate.Execute(&manifest, p); err != nil {
		return err
	}
	_, err := s.run(ctx, manifest.String(), "kubectl", "create", "-f", "-")
	return err
}

// completes waits until a JobSet is Completed, and looks at what its driver got, how often it was
// restarted, and where its Jobs ran: in the worker of a name, or together in any.
func (s *Story) completes(ctx context.Context, p pair, worker string, restarts int) error {
	jobSet := "jobset/" + p.Name
	if err := s.all("kubectl wait --timeout=2m --for=condition=Completed " + jobSet)(ctx); err != nil {
		return err
	}
	var errs []error
	for _, job := range p.jobs()[1:] {
		errs = append(errs, s.shows(ctx, "work of "+job+"-0", "kubectl jobferry logs "+p.jobs()[0]))
	}
	out, err := s.run(ctx, "", "kubectl", "get", jobSet, "-o", "jsonpath={.status.restarts}")
	if want := fmt.Sprint(restarts); err == nil && out != want {
		err = fmt.Errorf("%s was restarted %s times, want %s", jobSet, out, want)
	}
	return errors.Join(append(errs, err, s.together(ctx, p, worker))...)
}

// together checks that the Jobs of a JobSet are in the worker of a name, or all in one.
func (s *Story) together(ctx context.Context, p pair, worker string) error {
	out, err := s.run(ctx, "", append([]string{
		"kubectl", "get", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="jobferry.dev/Placed")].message}{"\n"}{end}`, "job",
	}, p.jobs()...)...)
	at := strings.Fields(out)
	if worker == "" && len(at) > 0 {
		worker = at[0]
	}
	if want := slices.Repeat([]string{worker}, len(p.jobs())); err == nil && !slices.Equal(at, want) {
		err = fmt.Errorf("the Jobs of %s are in %q, want %q", p.Name, at, want)
	}
	return err
}

// lacksJobSet checks that a worker has nothing of JobSet.
func (s *Story) lacksJobSet(ctx context.Context, worker string) error {
	for _, what := range []string{"api-resources --api-group=jobset.x-k8s.io -o name", "get namespace " + jobsettest.Namespace + " --ignore-not-found -o name"} {
		out, err := s.run(ctx, "", strings.Fields("kubectl --context "+worker+" "+what)...)
		if err == nil && out != "" {
			err = fmt.Errorf("%s has %s", worker, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
