package chart_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Each Pod of the charts passes the Pod Security Standard "restricted", by the evaluator that API
// servers have, whatever is switched on.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, chart := range []string{hubChart, workerChart} {
		for name, values := range valueSets(t, chart) {
			t.Run(chart+"/"+name, func(t *testing.T) {
				t.Parallel()
				all := render(t, chart, "-f", values)
				for _, kind := range []string{"Pod", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"} {
					for _, object := range all.of(kind) {
						t.Errorf("nothing looks at the Pods of %s %s", kind, object.GetName())
					}
				}
				deployments := all.of("Deployment")
				if len(deployments) == 0 {
					t.Error("there is no Deployment")
				}
				for _, object := range deployments {
					template := as[appsv1.Deployment](t, object).Spec.Template
					if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec)); !result.Allowed {
						t.Errorf("Deployment %s: %s", object.GetName(), result.ForbiddenDetail())
					}
				}
			})
		}
	}
}
