package hostile_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// makeTenant submits the tenant's Jobs that stay.
func (s *spender) makeTenant() {
	s.t.Helper()
	s.Apply(s.Hub, s.tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: referenced}, data: {n: '0'}}")
	for i := range 8 {
		s.submit(fmt.Sprint("large-", i), rigtest.Suspended(), large(1_200_000))
	}
	for i := range 5 {
		s.submit(fmt.Sprint("refers-", i), ferrytest.OnWorker("w1"), refers(20_000), rigtest.RunForever())
	}
	s.submit("victim", ferrytest.OnWorker(hostile), rigtest.RunForever())
	for name, option := range judgedLong() {
		s.submit(name, option)
	}
}

// submit creates a Job that may go to any worker.
func (s *spender) submit(name string, options ...rigtest.Option) {
	s.t.Helper()
	s.must(s.Hub.Client().BatchV1().Jobs(s.tenant).Create(s.Context(), s.job(name, options...), metav1.CreateOptions{}))
}

func (s *spender) job(name string, options ...rigtest.Option) *batchv1.Job {
	return rigtest.Job(s.tenant, name, append([]rigtest.Option{rigtest.ManagedBy(v1alpha1.ManagedByDispatcher)}, options...)...)
}

// refers makes a Pod that takes its environment from so many ConfigMaps, one of which there is.
func refers(n int) rigtest.Option {
	return func(j *batchv1.Job) {
		c := &j.Spec.Template.Spec.Containers[0]
		for i := range n {
			name := fmt.Sprint("none-", i)
			if i == 0 {
				name = "referenced"
			}
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: ptr.To(true),
			}})
		}
	}
}

// judgedLong are Jobs of which each comparison with a node, a Pod or a device is one of very many.
// None has room anywhere, so all of them wait in line.
func judgedLong() map[string]rigtest.Option {
	node := func(terms ...corev1.NodeSelectorTerm) rigtest.Option {
		return func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
			}}
		}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	var terms []corev1.NodeSelectorTerm
	for i := range 25_000 {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{in("a", fmt.Sprint(i))}})
	}
	var values corev1.NodeSelectorTerm
	for i := range 8 {
		var of []string
		for k := range 15_000 {
			of = append(of, fmt.Sprint(k))
		}
		values.MatchExpressions = append(values.MatchExpressions, in(fmt.Sprint("key-", i), of...))
	}
	return map[string]rigtest.Option{
		"terms":  node(terms...),
		"values": node(values),
		"claims": func(j *batchv1.Job) {
			for i := range 8_000 {
				j.Spec.Template.Spec.ResourceClaims = append(j.Spec.Template.Spec.ResourceClaims, corev1.PodResourceClaim{
					Name: fmt.Sprint("c", i), ResourceClaimTemplateName: ptr.To("none"),
				})
			}
		},
		"endless": func(j *batchv1.Job) {
			one := corev1.ResourceList{"example.org/endless": resource.MustParse("1")}
			j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
		},
		"labels": func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": "at-all"}},
				}},
			}}
		},
	}
}

// listsTables asks for the table of all large Jobs, 20 times at once.
func (s *spender) listsTables(ctx context.Context, _ int) error {
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			path := "/apis/subresources.jobferry.dev/v1alpha1/namespaces/" + s.tenant + "/dispatchedjobs"
			if s.inPeace {
				path = "/apis/batch/v1/namespaces/" + s.tenant + "/jobs"
			}
			errs <- s.get(ctx, path).Error()
		}()
	}
	var failed error
	for range cap(errs) {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}

func (s *spender) get(ctx context.Context, path string) rest.Result {
	return s.Hub.Client().BatchV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/vnd.kubernetes.protobuf, application/json").Do(ctx)
}

func (s *spender) changesReferenced(ctx context.Context, n int) error {
	_, err := s.Hub.Client().CoreV1().ConfigMaps(s.tenant).Patch(ctx, "referenced", types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n), metav1.PatchOptions{})
	return err
}

// asksForPods asks for the Pods of a Job of the worker, and gets none of its names.
func (s *spender) asksForPods(ctx context.Context, _ int) error {
	if s.inPeace {
		return nil
	}
	body, err := s.get(ctx, "/apis/subresources.jobferry.dev/v1alpha1/namespaces/"+s.tenant+"/jobs/victim/pods").Raw()
	if bytes.Contains(body, []byte("touch")) {
		s.t.Errorf("names that are commands reach a user: %s", body)
	}
	return err
}

// submitsStuck submits Jobs like those of others whose Pods never start, to all workers.
func (s *spender) submitsStuck(ctx context.Context, n int) error {
	if n >= 20 {
		return nil
	}
	_, err := s.Hub.Client().BatchV1().Jobs(s.tenant).Create(ctx, s.job(fmt.Sprint("stuck-", n), func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/never"}}
	}), metav1.CreateOptions{})
	return err
}

// connects opens connections to the aggregated API that say nothing, and keeps them.
func (s *spender) connects(ctx context.Context, n int) error {
	if n >= 40 || s.inPeace {
		return nil
	}
	for range 40 {
		anybody := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // on loopback
		c, err := (&tls.Dialer{Config: anybody}).DialContext(ctx, "tcp", s.address)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = c.Close() })
	}
	return nil
}
