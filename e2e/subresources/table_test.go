package subresources_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/jobview"
)

// The table of Jobs, by the real kubectl.
func TestTable(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	serve(f, t)
	for name, test := range map[string]func(*testing.T){
		"kubectl get shows where Jobs run, and why they wait": getsTheTable,
		"pages and selectors are those of Jobs":               getsPages,
		"kubectl get -w follows":                              followsTheTable,
		"a watch tells of changes, and of reasons alone":      watchesTheTable,
		"a watch goes on from a list":                         watchesFromAVersion,
		"a user sees just the namespaces that RBAC allows":    keepsTenantsApart,
		"a flood of watches is bounded":                       boundsWatches,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
}

func label(key, value string) rigtest.Option {
	return func(j *batchv1.Job) { j.Labels = map[string]string{key: value} }
}

// rows are the fields of the lines that kubectl prints, without the header.
func rows(out string) (fields []string) {
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "NAME" && words[0] != "NAMESPACE" {
			fields = append(fields, strings.Join(words, " "))
		}
	}
	return fields
}

func getsTheTable(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("runs", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.Submit("waits", ferrytest.OnWorker("nowhere"))
	f.Submit("ends", ferrytest.OnWorker("w1"))
	f.Create(f.Hub, rigtest.Job(f.NS, "plain"))
	f.LeaveWorker("w1")
	f.HubJobUntil("runs", func(j *batchv1.Job) bool { return j.Status.Ready != nil && *j.Status.Ready == 1 })
	f.HubJobUntil("ends", rigtest.Complete)
	f.EventUntil("waits", "Pending", "")

	whyWaits := login(f, t, "waiter").grant(f, f.NS, "watch: dispatchedjobs").whyUntil(f, "waits")
	out := f.Kubectl(f.Hub, "", "get", "dj", "-n", f.NS)
	if head := strings.Join(strings.Fields(out[:strings.Index(out, "\n")]), " "); head != "NAME WORKER STATE SUCCEEDED ACTIVE DURATION AGE WHY" {
		t.Errorf("columns: %s", head)
	}
	for i, want := range []string{"ends w1 Complete 1/1 0 ", "runs w1 Running 0/1 1 ", "waits - Pending 0/1 0 - "} {
		if got := rows(out); len(got) != 3 || !strings.HasPrefix(got[i], want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
	if !strings.Contains(out, whyWaits) || !strings.Contains(whyWaits, " clusters available: ") {
		t.Errorf("why %q, in:\n%s", whyWaits, out)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"dj", "runs", "-o", "wide"}, "READY FAILED WORKERS MOVED FROM SELECTOR WHY"},
		{[]string{"dj/runs", "-o", "name"}, "dispatchedjob.subresources.jobferry.dev/runs"},
		{[]string{"dispatchedjobs", "runs", "-o", "jsonpath={.kind} {.status.state} {.status.workers}"}, `DispatchedJob Running ["w1"]`},
		{[]string{"dispatchedjob.subresources.jobferry.dev", "-o", "yaml"}, "kind: DispatchedJob"},
		{[]string{"dj", "--show-kind", "--show-labels", "--sort-by=.metadata.name"}, "LABELS"},
	} {
		if out := f.Kubectl(f.Hub, "", append([]string{"get", "-n", f.NS}, row.args...)...); !strings.Contains(strings.Join(strings.Fields(out), " "), row.want) {
			t.Errorf("%v: no %q in:\n%s", row.args, row.want, out)
		}
	}
	if out := f.Kubectl(f.Hub, "", "get", "dj", "-A"); !strings.Contains(strings.Join(rows(out), "\n"), f.NS+" runs w1 Running") {
		t.Errorf("of all namespaces:\n%s", out)
	}
	if out := f.Kubectl(f.Hub, "", "describe", "dj", "-n", f.NS, "waits"); !strings.Contains(out, "Why:") {
		t.Errorf("described:\n%s", out)
	}
	if _, err := f.Hub.Kubectl(f.Context(), "", "get", "dj", "-n", f.NS, "plain"); err == nil || !strings.Contains(err.Error(), `"plain" not found`) {
		t.Errorf("a Job that isn't Jobferry's: %v", err)
	}
	if _, err := f.Hub.Kubectl(f.Context(), "", "delete", "dj", "-n", f.NS, "runs"); err == nil || !strings.Contains(err.Error(), "DELETE is not supported") {
		t.Errorf("delete: %v", err)
	}
}

func getsPages(t *testing.T) {
	f := ferrytest.For(t)
	for i := range 7 {
		f.Submit(fmt.Sprint("job-", i), rigtest.Suspended(), label("odd", fmt.Sprint(i%2 == 1)))
		f.Create(f.Hub, rigtest.Job(f.NS, fmt.Sprint("plain-", i)))
	}
	for _, row := range []struct {
		args  []string
		names string
	}{
		{[]string{"--chunk-size=2"}, "job-0 job-1 job-2 job-3 job-4 job-5 job-6"},
		{[]string{"--chunk-size=0"}, "job-0 job-1 job-2 job-3 job-4 job-5 job-6"},
		{[]string{"--chunk-size=1", "-l", "odd=true"}, "job-1 job-3 job-5"},
		{[]string{"-l", "odd!=true"}, "job-0 job-2 job-4 job-6"},
		{[]string{"--field-selector", "metadata.name=job-4"}, "job-4"},
		{[]string{"--field-selector", "metadata.name!=job-4", "-l", "odd=false"}, "job-0 job-2 job-6"},
		{[]string{"-A", "--field-selector", "metadata.namespace=" + f.NS, "-l", "odd=true"}, "job-1 job-3 job-5"},
	} {
		out := f.Kubectl(f.Hub, "", append([]string{"get", "dj", "-n", f.NS, "-o", "jsonpath={.items[*].metadata.name}"}, row.args...)...)
		if out != row.names {
			t.Errorf("%v: %s, want %s", row.args, out, row.names)
		}
		table := f.Kubectl(f.Hub, "", append([]string{"get", "dj", "-n", f.NS, "-o", "wide"}, row.args...)...)
		if n := len(rows(table)); n != len(strings.Fields(row.names)) {
			t.Errorf("%v: %d rows in:\n%s", row.args, n, table)
		}
	}
	u := login(f, t, "pager").grant(f, f.NS, "get, list, watch: dispatchedjobs")
	var page, rest list
	u.check(u.table(f.Context(), &page, f.NS, "limit=3"))
	for i := range 4 {
		f.Delete(fmt.Sprint("job-", i), metav1.DeletePropagationBackground)
	}
	u.check(u.table(f.Context(), &rest, f.NS, "limit=500", "continue="+page.Continue))
	if got := append(page.names(), rest.names()...); !slices.Equal(got, []string{"job-0", "job-1", "job-2", "job-3", "job-4", "job-5", "job-6"}) ||
		page.ResourceVersion != rest.ResourceVersion || rest.Continue != "" {
		t.Errorf("a list that is continued isn't of one moment: %v, %q and %q", got, page.ResourceVersion, rest.ResourceVersion)
	}
	_, err := f.Hub.Kubectl(f.Context(), "", "get", "dj", "-n", f.NS, "--field-selector", "status.state=Pending")
	if err == nil || !strings.Contains(err.Error(), "field label not supported") {
		t.Errorf("an unknown field: %v", err)
	}
}

// list is a DispatchedJobList.
type list struct {
	metav1.ListMeta `json:"metadata"`

	Items []jobview.DispatchedJob `json:"items"`
}

func (l list) names() (names []string) {
	for _, item := range l.Items {
		names = append(names, item.Name)
	}
	return names
}

func tablePath(namespace string) string {
	if namespace == "" {
		return "/apis/subresources.jobferry.dev/v1alpha1/dispatchedjobs"
	}
	return "/apis/subresources.jobferry.dev/v1alpha1/namespaces/" + namespace + "/dispatchedjobs"
}

// table lists the Jobs of a namespace.
func (u *user) table(ctx context.Context, into *list, namespace string, parameters ...string) error {
	request := u.api.Get().AbsPath(tablePath(namespace))
	for name, values := range query(parameters) {
		request.Param(name, values[0])
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	content, err := result.Raw()
	u.check(err)
	return json.Unmarshal(content, into)
}

// event is one of a watch.
type event struct {
	Type   string
	Object jobview.DispatchedJob
}

// watch begins a watch; next returns its events, and false at its end.
func (u *user) watch(ctx context.Context, namespace string, parameters ...string) (next func() (event, bool), err error) {
	request := u.api.Get().AbsPath(tablePath(namespace)).Param("watch", "true").MaxRetries(0)
	for name, values := range query(parameters) {
		request.Param(name, values[0])
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	u.t.Cleanup(func() { _ = stream.Close() })
	decoder := json.NewDecoder(bufio.NewReader(stream))
	return func() (e event, ok bool) { return e, decoder.Decode(&e) == nil }, nil
}

func followsTheTable(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("before", rigtest.Suspended())
	cmd := exec.CommandContext(f.Context(), f.Hub.KubectlProgram(), "--kubeconfig="+f.Hub.Kubeconfig(), "get", "dj", "-n", f.NS, "-w")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text string
	printed := bufio.NewScanner(out)
	// until reads on until kubectl has printed a row.
	until := func(row string) {
		t.Helper()
		for printed.Scan() {
			text += printed.Text() + "\n"
			if strings.HasPrefix(strings.Join(strings.Fields(printed.Text()), " "), row) {
				return
			}
		}
		t.Fatalf("no %q in:\n%s", row, text)
	}
	until("before ")
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.LeaveWorker("w1")
	until("job w1 Starting 0/1 ")
	until("job w1 Complete 1/1 0 ")
	if strings.Count(text, "NAME") != 1 {
		t.Errorf("the columns aren't there once:\n%s", text)
	}
	_ = cmd.Process.Kill() // it would follow for ever
	_ = cmd.Wait()
}

func watchesTheTable(t *testing.T) {
	f := ferrytest.For(t)
	u := login(f, t, "watcher").grant(f, f.NS, "get, list, watch: dispatchedjobs")
	f.Submit("before", ferrytest.OnWorker("nowhere"))
	f.EventUntil("before", "Pending", "")
	f.HubJobUntil("before", func(j *batchv1.Job) bool { return hubstate.Get(j, hubstate.Waits) != "" }) // it changes no more
	var jobs list
	u.check(u.table(f.Context(), &jobs, f.NS))
	next, err := u.watch(f.Context(), f.NS, "resourceVersion="+jobs.ResourceVersion)
	u.check(err)

	// A new reason, for a Job that doesn't change.
	before := jobs.Items[0]
	f.Apply(f.Hub, f.NS, fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: before.new}
eventTime: "2026-11-23T00:00:00.000000Z"
reportingController: jobferry
reportingInstance: test
type: Warning
action: Place
reason: Pending
note: "another reason"
regarding: {apiVersion: batch/v1, kind: Job, namespace: %s, name: before, uid: %q}
`, f.NS, before.UID))
	for {
		e, ok := next()
		if !ok {
			t.Fatal("the watch has ended")
		}
		if e.Type != "MODIFIED" || e.Object.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s %s in version %s", e.Type, e.Object.Name, e.Object.ResourceVersion)
		}
		if e.Object.Status.Why == "another reason" {
			break
		}
	}

	// The life of a Job, and of one that isn't Jobferry's.
	f.Create(f.Hub, rigtest.Job(f.NS, "plain"))
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.LeaveWorker("w1")
	var states []string
	for !slices.Contains(states, "MODIFIED Complete") {
		e, ok := next()
		if !ok || e.Object.Name != "job" {
			t.Fatalf("%v, %s %s", ok, e.Type, e.Object.Name)
		}
		states = append(states, e.Type+" "+string(e.Object.Status.State))
	}
	f.Delete("job", metav1.DeletePropagationBackground)
	for {
		e, ok := next()
		if !ok || e.Object.Name != "job" {
			t.Fatalf("%v, %s %s", ok, e.Type, e.Object.Name)
		}
		if e.Type == "DELETED" {
			break
		}
	}
	if states[0] != "ADDED Pending" || !slices.Contains(states, "MODIFIED Starting") {
		t.Errorf("states: %v", states)
	}
}

func watchesFromAVersion(t *testing.T) {
	f := ferrytest.For(t)
	u := login(f, t, "resumer").grant(f, f.NS, "get, list, watch: dispatchedjobs")
	f.Submit("first", rigtest.Suspended())
	var jobs list
	u.check(u.table(f.Context(), &jobs, f.NS))
	f.Submit("second", rigtest.Suspended())
	next, err := u.watch(f.Context(), f.NS, "resourceVersion="+jobs.ResourceVersion, "timeoutSeconds=5")
	u.check(err)
	added := map[string]bool{}
	for e, ok := next(); ok; e, ok = next() { // to its end, by its own timeout
		if e.Type == "ADDED" {
			added[e.Object.Name] = true
		}
	}
	if len(added) != 1 || !added["second"] || f.Context().Err() != nil {
		t.Errorf("added since the list: %v", added)
	}
	next, err = u.watch(f.Context(), f.NS, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true")
	u.check(err)
	for names := map[string]bool{}; ; {
		e, ok := next()
		if !ok {
			t.Fatal("the watch has ended")
		}
		names[e.Object.Name] = true
		if e.Type == "BOOKMARK" && e.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			if !names["first"] || !names["second"] {
				t.Errorf("streamed list: %v", names)
			}
			break
		}
	}
}

func keepsTenantsApart(t *testing.T) {
	f, other := ferrytest.For(t), ferrytest.For(t)
	f.Submit("mine", rigtest.Suspended())
	other.Submit("theirs", rigtest.Suspended())
	ctx := f.Context()
	u := login(f, t, "tenant").grant(f, f.NS, "get, list, watch: dispatchedjobs")
	var jobs list
	u.check(u.table(ctx, &jobs, f.NS))
	if !slices.Equal(jobs.names(), []string{"mine"}) {
		t.Errorf("%v", jobs.names())
	}
	for _, namespace := range []string{other.NS, ""} {
		u.expect(u.table(ctx, &jobs, namespace), http.StatusForbidden, "dispatchedjobs")
		u.expect(u.table(ctx, &jobs, namespace, "fieldSelector=metadata.namespace="+f.NS), http.StatusForbidden, "dispatchedjobs")
		_, err := u.watch(ctx, namespace)
		u.expect(err, http.StatusForbidden, "dispatchedjobs")
	}
	u.expect(u.api.Get().AbsPath(tablePath(other.NS)+"/theirs").Do(ctx).Error(), http.StatusForbidden, "dispatchedjobs")

	// Who may get one Job may also select it, and nothing else.
	f.Kubectl(f.Hub, "", "-n", f.NS, "create", "role", "one", "--verb=get,list,watch", "--resource=dispatchedjobs.subresources.jobferry.dev", "--resource-name=mine")
	f.Kubectl(f.Hub, "", "-n", f.NS, "create", "rolebinding", "one", "--role=one", "--user=modest")
	modest := login(f, t, "modest")
	modest.check(modest.table(ctx, &jobs, f.NS, "fieldSelector=metadata.name=mine"))
	modest.expect(modest.table(ctx, &jobs, f.NS), http.StatusForbidden, "dispatchedjobs")
	// Rights on Jobs aren't rights on the table, which has less and more than Jobs.
	f.Kubectl(f.Hub, "", "-n", f.NS, "create", "role", "batch", "--verb=*", "--resource=jobs.batch")
	f.Kubectl(f.Hub, "", "-n", f.NS, "create", "rolebinding", "batch", "--role=batch", "--user=batcher")
	batcher := login(f, t, "batcher")
	batcher.expect(batcher.table(ctx, &jobs, f.NS), http.StatusForbidden, "dispatchedjobs")
}

func boundsWatches(t *testing.T) {
	f := ferrytest.For(t)
	greedy := login(f, t, "greedy").grant(f, f.NS, "get, list, watch: dispatchedjobs")
	modest := login(f, t, "modest-too").grant(f, f.NS, "get, list, watch: dispatchedjobs")
	ctx, cancel := context.WithCancel(f.Context())
	open := 0
	for range 30 {
		switch _, err := greedy.watch(ctx, f.NS); {
		case err == nil:
			open++
		default:
			greedy.expect(err, http.StatusTooManyRequests, `user "greedy" has 10 watches open here`)
		}
	}
	if open != 10 {
		t.Errorf("%d watches are open", open)
	}
	_, err := modest.watch(ctx, f.NS)
	modest.check(err)
	cancel() // the places are free again, as soon as the server notices
	for {
		_, err := greedy.watch(f.Context(), f.NS)
		if err == nil {
			return
		}
		greedy.expect(err, http.StatusTooManyRequests, "watches")
		if t.Failed() {
			return
		}
	}
}

// whyUntil waits until a Job has a reason, and returns it.
func (u *user) whyUntil(f *ferrytest.Ferry, name string) string {
	u.t.Helper()
	next, err := u.watch(f.Context(), f.NS, "fieldSelector=metadata.name="+name)
	u.check(err)
	for {
		e, ok := next()
		if !ok {
			u.t.Fatalf("the watch has ended without a reason of Job %s", name)
		}
		if e.Object.Status.Why != "" {
			return e.Object.Status.Why
		}
	}
}
