package chart_test

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// hasPriority checks that the API server takes the requests of an account for those of a controller
// of its own, and its Lease for a Lease of such a one.
func (r *release) hasPriority(account string) {
	r.t.Helper()
	levels := map[string]string{}
	list, err := r.cluster.Client().FlowcontrolV1().PriorityLevelConfigurations().List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, level := range list.Items {
		levels[string(level.UID)] = level.Name
	}
	config := r.cluster.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		r.t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/" + account: "leader-election",
		"/apis/batch/v1/jobs?limit=1":     "workload-high",
		"/api/v1/namespaces/default/pods": "workload-high",
	} {
		got := ""
		err := wait.PollUntilContextTimeout(r.Context(), 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
			if err != nil {
				return false, err
			}
			answer, err := client.Do(request)
			if err != nil {
				return false, err
			}
			got = levels[answer.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid")]
			return got == want, answer.Body.Close()
		})
		if err != nil {
			r.t.Errorf("%s of %s: level %q, want %q (%v)", path, account, got, want, err)
		}
	}
}
