package dispatchedjobs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// job makes a Job of Jobferry that isn't placed.
func job(name, version string, edits ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version},
		Spec:       batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.ManagedByDispatcher)},
	}
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func plain(j *batchv1.Job) { j.Spec.ManagedBy = nil }

func complete(j *batchv1.Job) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
}

// event makes one of Jobferry's events, a number of seconds after a day has begun.
func event(of, reason, message string, second int, edits ...func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint(of, second), ResourceVersion: fmt.Sprint(100 + second)},
		InvolvedObject:      corev1.ObjectReference{Kind: "Job", Namespace: "team", Name: of, UID: types.UID("uid-" + of)},
		ReportingController: v1alpha1.EventController, Reason: reason, Message: message,
		EventTime: metav1.NewMicroTime(time.Date(2026, 11, 1, 0, 0, second, 0, time.UTC)),
	}
	for _, edit := range edits {
		edit(e)
	}
	return e
}

func in(namespace string) func(*corev1.Event) {
	return func(e *corev1.Event) { e.Namespace = namespace }
}

// newServer makes a Server of a hub, whose reasons are known.
func newServer(objects ...runtime.Object) (*Server, *fake.Clientset) {
	hub := fake.NewClientset(objects...)
	s := New(hub, nil, time.Minute, logr.Discard())
	s.reasons.replace(newHeld())
	return s, hub
}

// inPages has the hub list Jobs in pages, and returns what it's asked.
func inPages(hub *fake.Clientset, of ...[]batchv1.Job) *[]metav1.ListOptions {
	asked := &[]metav1.ListOptions{}
	hub.PrependReactor("list", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		page := batchv1.JobList{ListMeta: metav1.ListMeta{ResourceVersion: "50"}, Items: of[len(*asked)]}
		*asked = append(*asked, action.(clienttesting.ListActionImpl).ListOptions)
		if len(*asked) < len(of) {
			page.Continue = fmt.Sprint("page ", len(*asked))
		}
		return true, &page, nil
	})
	return asked
}

func get(query string, accept ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/?"+query, nil)
	r.Header["Accept"] = accept
	return r
}

func options(t *testing.T, query string) *Options {
	t.Helper()
	o, err := ParseOptions(get(query).URL.Query())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// table reads a Table as lines of its cells, with the columns first.
func table(t *testing.T, content []byte) string {
	t.Helper()
	var read metav1.Table
	if err := json.Unmarshal(content, &read); err != nil || read.Kind != "Table" || read.APIVersion != "meta.k8s.io/v1" {
		t.Fatalf("no Table: %v: %s", err, content)
	}
	var lines []string
	if len(read.ColumnDefinitions) > 0 {
		var names []string
		for _, c := range read.ColumnDefinitions {
			names = append(names, c.Name)
		}
		lines = append(lines, strings.Join(names, "|"))
	}
	for _, row := range read.Rows {
		lines = append(lines, strings.Trim(fmt.Sprint(row.Cells), "[]"))
	}
	return strings.Join(lines, "\n")
}
