package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// undispatched is a Job that Jobferry doesn't run, and what is known of its namespace.
type undispatched struct {
	job *batchv1.Job
	// labels of the namespace. known is false for users who may not read it.
	labels map[string]string
	known  bool
	gate   namespaces.Gate
}

// dispatchReason is why a Job isn't dispatched, and what its user or an admin does to change that.
type dispatchReason struct {
	why  string
	ways []string
}

// dispatchedOwners are the controllers whose Jobs are dispatched by default, beside those that an
// admin has named in the chart.
var dispatchedOwners = []string{"CronJob.batch", jobSetKind, "ScaledJob.keda.sh"}

const jobSetKind = "JobSet.jobset.x-k8s.io"

// undispatchedRules are checked in order; the first that applies is told.
var undispatchedRules = []struct {
	applies func(undispatched) bool
	reason  func(undispatched) dispatchReason
}{
	{undispatched.isMirror, func(undispatched) dispatchReason {
		return dispatchReason{why: "another hub has made it here, as in its worker", ways: []string{"on that hub, kubectl jobferry describe shows it"}}
	}},
	{undispatched.isOfTheSystem, func(u undispatched) dispatchReason {
		return dispatchReason{why: fmt.Sprintf("Jobs of namespace %s never are, whatever its labels", u.job.Namespace),
			ways: []string{"create it in another namespace"}}
	}},
	{func(u undispatched) bool { return u.controller() == batchv1.JobControllerName }, func(u undispatched) dispatchReason {
		return dispatchReason{why: "it was opted out: its spec.managedBy is " + batchv1.JobControllerName + ", the hub's own Job controller",
			ways: append(u.openNamespace(), "create it again without spec.managedBy, which can't be changed: "+u.again())}
	}},
	{func(u undispatched) bool { return u.controller() != "" }, func(u undispatched) dispatchReason {
		return dispatchReason{why: fmt.Sprintf("its spec.managedBy names another controller, %s", u.controller()),
			ways: append(u.openNamespace(), "create it again without spec.managedBy, which can't be changed: "+u.again())}
	}},
	{func(u undispatched) bool { return !u.known }, func(u undispatched) dispatchReason {
		return dispatchReason{
			why: fmt.Sprintf("its spec.managedBy isn't set. You may not read namespace %s: it isn't labelled, or the Job is older than the label, or its controller's Jobs stay on the hub", u.job.Namespace),
			ways: []string{
				fmt.Sprintf("an admin of the hub sees the label: kubectl get namespace %s -L %s", u.job.Namespace, v1alpha1.LabelDispatch),
				"if it's " + v1alpha1.DispatchEnabled + ", create the Job again: " + u.again(),
			}}
	}},
	{func(u undispatched) bool { return len(u.openNamespace()) > 0 }, func(u undispatched) dispatchReason {
		return dispatchReason{why: u.closed(), ways: append(u.openNamespace(), "then create the Job again, as its controller can't be changed: "+u.again())}
	}},
	{func(u undispatched) bool { return u.labels[v1alpha1.LabelDispatch] == v1alpha1.DispatchAllowed }, func(u undispatched) dispatchReason {
		return dispatchReason{
			why: fmt.Sprintf("in namespace %s, with %s=%s, only Jobs with spec.managedBy: %s are",
				u.job.Namespace, v1alpha1.LabelDispatch, v1alpha1.DispatchAllowed, v1alpha1.ManagedByDispatcher),
			ways: []string{
				"create it again with that field: " + u.again(),
				"or have an admin of the hub let Jobferry take all new Jobs: " + u.label(" --overwrite"),
			}}
	}},
	{func(u undispatched) bool { return u.owner() != "" && !slices.Contains(dispatchedOwners, u.owner()) }, func(u undispatched) dispatchReason {
		return dispatchReason{
			why: fmt.Sprintf("it belongs to %s, a %s, whose Jobs stay on the hub", metav1.GetControllerOf(u.job).Name, u.owner()),
			ways: []string{
				fmt.Sprintf("set spec.managedBy: %s in the Job template of the %s", v1alpha1.ManagedByDispatcher, metav1.GetControllerOf(u.job).Kind),
				"or have an admin of the hub add " + u.owner() + " to the chart's value dispatch.owners",
			}}
	}},
	{func(undispatched) bool { return true }, func(u undispatched) dispatchReason {
		return dispatchReason{why: fmt.Sprintf("it was created before namespace %s had its label, or Jobferry its admission", u.job.Namespace),
			ways: []string{"create it again, as its controller can't be changed: " + u.again()}}
	}},
}

// reason is why the Job isn't dispatched.
func (u undispatched) reason() dispatchReason {
	for _, r := range undispatchedRules {
		if r.applies(u) {
			return r.reason(u).inLines()
		}
	}
	return dispatchReason{}
}

// inLines has each text in one line. What names the Job's controller may have any characters: API
// servers don't check them.
func (r dispatchReason) inLines() dispatchReason {
	r.why = text.Clean(r.why, text.MaxMessage)
	for i := range r.ways {
		r.ways[i] = text.Clean(r.ways[i], text.MaxMessage)
	}
	return r
}

func (u undispatched) isMirror() bool { return u.job.Labels[v1alpha1.LabelOrigin] != "" }

// isOfTheSystem reports whether no label opens the namespace.
func (u undispatched) isOfTheSystem() bool {
	return u.gate.Closed(u.job.Namespace, map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchEnabled}) != ""
}

// controller is whom spec.managedBy names.
func (u undispatched) controller() string { return ptr.Deref(u.job.Spec.ManagedBy, "") }

func (u undispatched) owner() string { return ownerKind(u.job) }

// ownerKind is the kind of a Job's controller, as the chart's value dispatch.owners has it.
func ownerKind(job *batchv1.Job) string {
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return ""
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return owner.Kind
	}
	return schema.GroupKind{Group: gv.Group, Kind: owner.Kind}.String()
}

// closed is why Jobs of the namespace aren't dispatched.
func (u undispatched) closed() string {
	if value, labelled := u.labels[v1alpha1.LabelDispatch]; labelled {
		return fmt.Sprintf("namespace %s isn't: its label %s is %q, which is neither %s nor %s",
			u.job.Namespace, v1alpha1.LabelDispatch, value, v1alpha1.DispatchEnabled, v1alpha1.DispatchAllowed)
	}
	return fmt.Sprintf("namespace %s isn't: it has no label %s", u.job.Namespace, v1alpha1.LabelDispatch)
}

// openNamespace is how an admin has the namespace's Jobs dispatched; nil: they are already, or
// nobody knows.
func (u undispatched) openNamespace() []string {
	if !u.known || u.gate.Closed(u.job.Namespace, u.labels) == "" {
		return nil
	}
	overwrite := ""
	if _, labelled := u.labels[v1alpha1.LabelDispatch]; labelled {
		overwrite = " --overwrite"
	}
	return []string{"an admin of the hub labels the namespace: " + u.label(overwrite)}
}

func (u undispatched) label(flags string) string {
	return fmt.Sprintf("kubectl label namespace %s %s=%s%s", u.job.Namespace, v1alpha1.LabelDispatch, v1alpha1.DispatchEnabled, flags)
}

// again is the command that creates the Job again.
func (u undispatched) again() string {
	if owner := metav1.GetControllerOf(u.job); owner != nil && owner.Kind == "CronJob" && objectnames.IsPlain(owner.Name) {
		return fmt.Sprintf("kubectl create job %s-again -n %s --from=cronjob/%s", u.job.Name, u.job.Namespace, owner.Name)
	}
	return fmt.Sprintf("kubectl replace --force -n %s -f FILE", u.job.Namespace)
}

// undispatchedJob reads what is needed to say why a Job isn't dispatched.
func (c *cli) undispatchedJob(ctx context.Context, hub client.Client, job *batchv1.Job) undispatched {
	namespace := &corev1.Namespace{}
	err := hub.Get(ctx, types.NamespacedName{Name: job.Namespace}, namespace)
	return undispatched{job, namespace.Labels, err == nil, namespaces.Gate{Own: c.systemNamespace}}
}

// namesShown is how many of several names a sentence has.
const namesShown = 3

// named is "a, b, c and 4 more".
func named(names []string, most int) string {
	if len(names) <= most+1 { // "and 1 more" is no shorter
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// sayUndispatched tells of the Jobs that aren't dispatched: why, if there are no others. Beside
// others, it names those of which nobody has said that they stay on the hub.
func (c *cli) sayUndispatched(ctx context.Context, hub client.Client, found *foundJobs) {
	others := found.undispatched
	switch {
	case len(others) == 0:
	case len(found.Items) == 0 && found.namespace == "":
		c.sayWhereUndispatched(others)
	case len(found.Items) == 0:
		c.sayReasons(ctx, hub, others)
	case found.namespace != "":
		if left := slices.DeleteFunc(slices.Clone(others), func(job batchv1.Job) bool { return !isLeftBehind(&job) }); len(left) > 0 {
			c.say("Not dispatched: %s. kubectl jobferry why %s -n %s says why.", named(namesOf(left), namesShown), left[0].Name, found.namespace)
		}
	}
}

// isLeftBehind reports whether a Job runs on the hub, and neither its user nor another controller
// wants that.
func isLeftBehind(job *batchv1.Job) bool {
	of := undispatched{job: job}
	return of.controller() == "" && !mirror.Finished(job) && !of.isMirror() && (of.owner() == "" || slices.Contains(dispatchedOwners, of.owner()))
}

// sayWhereUndispatched names the namespaces, but those of the system.
func (c *cli) sayWhereUndispatched(others []batchv1.Job) {
	gate, counts := namespaces.Gate{Own: c.systemNamespace}, map[string]int{}
	for i := range others {
		if u := (undispatched{job: &others[i], gate: gate}); !u.isOfTheSystem() {
			counts[others[i].Namespace]++
		}
	}
	if len(counts) > 0 {
		where := slices.Sorted(maps.Keys(counts))
		c.say("Jobs that aren't dispatched are in %s. kubectl jobferry jobs -n %s says why.", named(where, namesShown), where[0])
	}
}

// sayReasons says for each reason which Jobs have it. What to do is told for the first of them.
func (c *cli) sayReasons(ctx context.Context, hub client.Client, others []batchv1.Job) {
	of, names, ways := c.undispatchedJob(ctx, hub, &others[0]), map[string][]string{}, map[string][]string{}
	for i := range others {
		of.job = &others[i]
		reason := of.reason()
		if names[reason.why] == nil {
			ways[reason.why] = reason.ways
		}
		names[reason.why] = append(names[reason.why], others[i].Name)
	}
	for _, why := range slices.Sorted(maps.Keys(names)) {
		c.say("Not dispatched: %s: %s\n  %s", named(names[why], namesShown), why, strings.Join(ways[why], "\n  "))
	}
}
