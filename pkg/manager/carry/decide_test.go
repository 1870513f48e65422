package carry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var (
	mine = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "mirror-1"}}
	// neighbour is another Job in the same namespace of the worker.
	neighbour = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "test", UID: "mirror-2"}}
	rules     = Rules{Origin: "hub-1", Mirror: mine, Registers: func(s *corev1.Secret) bool { return s.Labels["registers"] != "" },
		Finished: func(o metav1.OwnerReference) bool { return o.Name == "ended" }}
)

type edit func(Object)

// source is an object on the hub.
func source(object Object, edits ...edit) Object {
	object.SetNamespace("team")
	object.SetName("x")
	object.SetUID("source-1")
	object.SetResourceVersion("70")
	for _, edit := range edits {
		edit(object)
	}
	return object
}

// copied is the copy of a source, which is owned by a mirror.
func copied(from Object, by *batchv1.Job, edits ...edit) Object {
	object := newCopy(from, Rules{Origin: "hub-1"})
	addOwner(object, by)
	object.SetUID("copy-1")
	object.SetResourceVersion("7")
	for _, edit := range edits {
		edit(object)
	}
	return object
}

func configMap(value string) Object {
	return &corev1.ConfigMap{Data: map[string]string{"key": value}}
}
func secret(value string) Object {
	return &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"key": []byte(value)}}
}
func account(pull ...string) Object {
	a := &corev1.ServiceAccount{AutomountServiceAccountToken: ptr.To(false), Secrets: []corev1.ObjectReference{{Name: "token"}}}
	for _, name := range pull {
		a.ImagePullSecrets = append(a.ImagePullSecrets, local(name))
	}
	return a
}

func service(clusterIP, app string) Object {
	return &corev1.Service{Spec: corev1.ServiceSpec{
		ClusterIP: clusterIP, ClusterIPs: []string{clusterIP}, Selector: map[string]string{"app": app}, PublishNotReadyAddresses: true,
		Ports: []corev1.ServicePort{{Name: "rpc", Port: 4000, Protocol: corev1.ProtocolTCP}},
	}}
}

// defaulted has what an API server adds.
func defaulted(o Object) {
	s := o.(*corev1.Service)
	s.Spec.ClusterIPs, s.Spec.Type = []string{s.Spec.ClusterIP}, corev1.ServiceTypeClusterIP
	s.Spec.IPFamilies, s.Spec.SessionAffinity = []corev1.IPFamily{corev1.IPv6Protocol}, corev1.ServiceAffinityNone
}
func withClusterIP(o Object) { o.(*corev1.Service).Spec.ClusterIP = "10.0.0.2" }

func immutable(o Object) {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Immutable = ptr.To(true)
	case *corev1.Secret:
		o.Immutable = ptr.To(true)
	}
}
func ofType(kind corev1.SecretType) edit { return func(o Object) { o.(*corev1.Secret).Type = kind } }
func leaving(o Object)                   { o.SetDeletionTimestamp(ptr.To(metav1.Now())) }
func labelled(key, value string) edit {
	return func(o Object) {
		labels := map[string]string{key: value}
		for k, v := range o.GetLabels() {
			if k != key {
				labels[k] = v
			}
		}
		o.SetLabels(labels)
	}
}
func recreated(o Object) { o.SetUID("source-2") }

func TestDecide(t *testing.T) {
	required, optional := Ref{Kind: Secret, Name: "x"}, Ref{Kind: Secret, Name: "x", Optional: true}
	peers := Ref{Kind: Service, Name: "x", Optional: true}
	otherHubs := labelled(v1alpha1.LabelOrigin, "hub-2")
	token, bootstrap := ofType(corev1.SecretTypeServiceAccountToken), ofType(corev1.SecretTypeBootstrapToken)
	rows := map[string]struct {
		ref              Ref
		source, existing Object
		unreadable       string
		want             Operation
		blocked, note    string
	}{
		"a first copy":                         {source: source(secret("a")), want: Create},
		"a copy that's there":                  {source: source(secret("a")), existing: copied(source(secret("a")), mine), want: Leave},
		"a copy of a neighbour":                {source: source(secret("a")), existing: copied(source(secret("a")), neighbour), want: AddOwner},
		"a source that has changed":            {source: source(secret("b")), existing: copied(source(secret("a")), mine), want: Update},
		"a neighbour's copy is old":            {source: source(secret("b")), existing: copied(source(secret("a")), neighbour), want: Update},
		"a copy that somebody edited":          {source: source(configMap("a")), existing: copied(source(configMap("b")), mine), want: Update},
		"the source has a new label":           {source: source(configMap("a"), labelled("app", "x")), existing: copied(source(configMap("a")), mine), want: Update},
		"the copy has another label":           {source: source(configMap("a")), existing: copied(source(configMap("a")), mine, labelled("team", "x")), want: Leave},
		"the source was created anew":          {source: source(configMap("a"), recreated), existing: copied(source(configMap("a")), mine), want: Update},
		"an immutable copy":                    {source: source(secret("a"), immutable), existing: copied(source(secret("a"), immutable), mine), want: Leave},
		"an immutable copy, source anew":       {source: source(secret("b"), immutable), existing: copied(source(secret("a"), immutable), mine), want: Recreate},
		"an immutable copy, source not":        {source: source(configMap("a")), existing: copied(source(configMap("a"), immutable), mine), want: Recreate},
		"an immutable copy, new label":         {source: source(secret("a"), immutable, labelled("app", "x")), existing: copied(source(secret("a"), immutable), mine), want: Update},
		"the source becomes immutable":         {source: source(secret("a"), immutable), existing: copied(source(secret("a")), mine), want: Update},
		"a Secret's type changes":              {source: source(secret("a"), ofType(corev1.SecretTypeTLS)), existing: copied(source(secret("a")), mine), want: Recreate},
		"a copy that goes":                     {source: source(secret("a")), existing: copied(source(secret("a")), neighbour, leaving), want: Await},
		"a foreign object, the same":           {source: source(secret("a")), existing: source(secret("a")), want: Leave},
		"a foreign object that differs":        {source: source(secret("a")), existing: source(secret("b")), want: Leave, note: `secret "x" there isn't Jobferry's and differs from the hub's`},
		"another hub's copy":                   {source: source(secret("a")), existing: copied(source(secret("b")), mine, otherHubs), want: Leave, note: "isn't Jobferry's"},
		"a foreign object, no source":          {existing: source(secret("b")), want: Leave},
		"a foreign object, private source":     {source: source(secret("a"), token), existing: source(secret("b")), want: Leave, note: "differs"},
		"a missing source":                     {want: Leave, blocked: `secret "x" not found: create it on the hub in namespace team`},
		"a missing source, optional":           {ref: optional, want: Leave},
		"a source that's gone, own copy":       {existing: copied(source(secret("a")), mine), want: Leave},
		"a source that's gone, neighbour's":    {existing: copied(source(secret("a")), neighbour), want: Leave, blocked: "not found"},
		"a ServiceAccount token":               {source: source(secret("a"), token), want: Leave, blocked: `secret "x" is of type kubernetes.io/service-account-token, and is never carried`},
		"a bootstrap token":                    {source: source(secret("a"), bootstrap), want: Leave, blocked: "never carried"},
		"a token that's optional":              {ref: optional, source: source(secret("a"), token), want: Leave},
		"a registration":                       {source: source(secret("a"), labelled("registers", "w")), want: Leave, blocked: `secret "x" registers a worker cluster`},
		"a source that became a registration":  {source: source(secret("b"), labelled("registers", "w")), existing: copied(source(secret("a")), mine), want: Leave},
		"an unreadable source":                 {unreadable: "forbidden", want: Leave, blocked: `secret "x" can't be read on the hub: forbidden`},
		"an unreadable source, optional":       {ref: optional, unreadable: "forbidden", want: Leave},
		"an unreadable source, own copy":       {unreadable: "forbidden", existing: copied(source(secret("a")), mine), want: Leave},
		"a ServiceAccount":                     {source: source(account("pull")), want: Create},
		"a ServiceAccount, more to pull with":  {source: source(account("pull", "more")), existing: copied(source(account("pull")), mine), want: Update},
		"a headless Service":                   {ref: peers, source: source(service(corev1.ClusterIPNone, "a")), want: Create},
		"a Service that's there":               {ref: peers, source: source(service(corev1.ClusterIPNone, "a")), existing: copied(source(service(corev1.ClusterIPNone, "a")), mine, defaulted), want: Leave},
		"a Service, another selector":          {ref: peers, source: source(service(corev1.ClusterIPNone, "b")), existing: copied(source(service(corev1.ClusterIPNone, "a")), mine, defaulted), want: Update},
		"a copy that isn't headless any more":  {ref: peers, source: source(service(corev1.ClusterIPNone, "a")), existing: copied(source(service(corev1.ClusterIPNone, "a")), mine, withClusterIP), want: Recreate},
		"a Service with an address":            {ref: peers, source: source(service("10.0.0.1", "a")), want: Leave, note: "isn't headless, and is never carried"},
		"... that the worker has, too":         {ref: peers, source: source(service("10.0.0.1", "a")), existing: source(service(corev1.ClusterIPNone, "a")), want: Leave},
		"no Service":                           {ref: peers, want: Leave},
		"an unreadable Service":                {ref: peers, unreadable: "forbidden", want: Leave, blocked: `service "x" can't be read on the hub: forbidden`},
		"a ServiceAccount that has got a pull": {source: source(account("pull")), existing: copied(source(account("pull", "added")), mine), want: Leave},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if row.ref.Name == "" {
				row.ref = required
			}
			snapshot := Snapshot{Ref: row.ref, Namespace: "team", Source: row.source, Existing: row.existing, Unreadable: row.unreadable}
			got := Decide(snapshot, rules)
			if got.Do != row.want {
				t.Errorf("decided on %s, want %s", got.Do, row.want)
			}
			checkText(t, "blocked", got.Blocked, row.blocked)
			checkText(t, "note", got.Note, row.note)
			checkSettles(t, snapshot, got)
		})
	}
}

func checkText(t *testing.T, what, got, want string) {
	t.Helper()
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// checkSettles carries a decision out, and sees that nothing is left to do then, and that all
// owners are kept.
func checkSettles(t *testing.T, snapshot Snapshot, d Decision) {
	t.Helper()
	before := snapshot.Existing
	switch d.Do {
	case Create, Update, Recreate:
		snapshot.Existing = d.Object
	case AddOwner:
		snapshot.Existing = patched(t, snapshot.Existing.(*corev1.Secret), d.Patch)
	default:
		return
	}
	if again := Decide(snapshot, rules); again.Do != Leave || again.Blocked != "" {
		t.Errorf("then decided on %s %s", again.Do, again.Blocked)
	}
	if !isOwner(mine, snapshot.Existing) || before != nil && isOwner(neighbour, before) != isOwner(neighbour, snapshot.Existing) {
		t.Errorf("owned by %v", snapshot.Existing.GetOwnerReferences())
	}
}

func patched(t *testing.T, object *corev1.Secret, patch []byte) Object {
	t.Helper()
	was, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	is, err := strategicpatch.StrategicMergePatch(was, patch, corev1.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	var answer corev1.Secret
	if err := json.Unmarshal(is, &answer); err != nil {
		t.Fatal(err)
	}
	return &answer
}

func TestCopy(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "team", Name: "x",
		Labels:      map[string]string{"app": "train", v1alpha1.LabelOrigin: "hub-1"},
		Annotations: map[string]string{v1alpha1.AnnotationHubUID: "source-1"},
	}
	adorn := func(o Object) {
		labelled("app", "train")(o)
		labelled("kueue.x-k8s.io/queue-name", "q")(o)
		o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "eks.amazonaws.com/role-arn": "arn"})
		o.SetFinalizers([]string{"example.org/keep"})
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: "hub"}})
	}
	rows := map[string]struct{ source, want Object }{
		"a ConfigMap": {
			source(&corev1.ConfigMap{Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {1}}}, adorn, immutable),
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {1}}, Immutable: ptr.To(true)},
		},
		"a Secret": {
			source(secret("a"), adorn, ofType(corev1.SecretTypeBasicAuth)),
			&corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{"key": []byte("a")}},
		},
		"a ServiceAccount": {
			source(account("pull"), adorn),
			&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false), ImagePullSecrets: []corev1.LocalObjectReference{local("pull")}},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := newCopy(row.source, Rules{Origin: "hub-1"})
			if !equality.Semantic.DeepEqual(got, row.want) {
				t.Error(cmp.Diff(row.want, got))
			}
			if kindOf(got) != kindOf(row.source) || !isCopy(got, "hub-1") || isCopy(got, "hub-2") || isCopy(row.source, "hub-1") {
				t.Error("isn't known as a copy of this hub")
			}
		})
	}
}

// Owners must not keep one another from being deleted, nor need permissions on each other's
// finalizers.
func TestOwner(t *testing.T) {
	want := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "mirror-1"}
	if got := ownerOf(mine); got != want {
		t.Errorf("got %+v", got)
	}
}

// From many owners, finished ones are removed.
// However many owners a copy has, few of them are looked at.
func TestManyOwnersAreCheap(t *testing.T) {
	shared := copied(source(secret("a")), neighbour)
	shared.SetOwnerReferences(make([]metav1.OwnerReference, 250_000))
	looks, counting := 0, rules
	counting.Finished = func(metav1.OwnerReference) bool { looks++; return false }
	if Decide(Snapshot{Namespace: "team", Source: source(secret("a")), Existing: shared}, counting); looks == 0 || looks > ownersLookedAt {
		t.Errorf("%d owners were looked at", looks)
	}
}

func TestOwnersThatHaveEndedLeave(t *testing.T) {
	shared := copied(source(secret("a")), neighbour)
	for i := range manyOwners {
		name, uid := "running", types.UID(fmt.Sprint("running-", i))
		if i%2 == 1 {
			name, uid = "ended", types.UID(fmt.Sprint("ended-", i))
		}
		addOwner(shared, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}})
	}
	d := Decide(Snapshot{Namespace: "team", Source: source(secret("a")), Existing: shared}, rules)
	after := patched(t, shared.(*corev1.Secret), d.Patch)
	if n := len(after.GetOwnerReferences()); n != manyOwners/2+2 || !isOwner(mine, after) || !isOwner(neighbour, after) {
		t.Errorf("%d owners, wanted the %d that run", n, manyOwners/2+2)
	}
	for _, owner := range after.GetOwnerReferences() {
		if owner.Name == "ended" {
			t.Fatalf("%s is still an owner", owner.UID)
		}
	}
}
