package hostile_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// A tenant whose namespace has the ResourceQuota of the sample can't create more Jobs than it says,
// however small or suspended they are.
func TestAQuotaBoundsATenantsJobs(t *testing.T) {
	f := ferrytest.For(t)
	sample, err := os.ReadFile(checkout.Path("config", "samples", "tenant.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tenant := f.NS + "-tenant"
	fewer := strings.NewReplacer("team-a", tenant, `count/jobs.batch: "200"`, `count/jobs.batch: "20"`)
	f.Kubectl(f.Hub, fewer.Replace(string(sample)), "apply", "--server-side", "--validate=strict", "-f", "-")
	t.Cleanup(func() {
		// the test's own has ended
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.Hub.Client().CoreV1().Namespaces().Delete(ctx, tenant, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	quota := f.Until(rig.Object(f.Hub.Client().CoreV1().RESTClient(), "resourcequotas", tenant, "hub"), func(o runtime.Object) bool {
		q, is := o.(*corev1.ResourceQuota)
		return is && len(q.Status.Used) == len(q.Spec.Hard)
	}).(*corev1.ResourceQuota)
	hard := quota.Status.Hard["count/jobs.batch"]
	most, err := strconv.Atoi(hard.String())
	if err != nil || most != 20 {
		t.Fatalf("the sample's quota of Jobs is %s", hard.String())
	}
	submit := func(name string) error {
		job := f.Job(name, rigtest.Suspended())
		job.Namespace = tenant
		_, err := f.Hub.Client().BatchV1().Jobs(tenant).Create(f.Context(), job, metav1.CreateOptions{})
		return err
	}
	for i := range most {
		if err := submit(fmt.Sprint("job-", i)); err != nil {
			t.Fatalf("Job %d of %d: %v", i+1, most, err)
		}
	}
	err = submit("one-more")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: hub, requested: count/jobs.batch=1") {
		t.Errorf("Job %d: %v", most+1, err)
	}
	jobs, err := f.Hub.Client().BatchV1().Jobs(tenant).List(f.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != most {
		t.Errorf("the tenant has %d Jobs (error %v)", len(jobs.Items), err)
	}
}
