package clustertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// request is what a path and a query ask for.
type request struct {
	*http.Request
	resource, subresource string
	name                  types.NamespacedName
}

// read takes apart a path such as apis/batch/v1/namespaces/team/jobs/a/status.
func read(req *http.Request, path string) (request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	r := request{Request: req}
	prefix := 2
	if parts[0] == "apis" {
		prefix = 3
	}
	if len(parts) <= prefix {
		return r, false
	}
	parts = parts[prefix:]
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.name.Namespace, parts = parts[1], parts[2:]
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name.Name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	_, known := kinds[r.resource]
	return r, known
}

func (r *request) group() schema.GroupResource {
	return schema.GroupResource{Group: kinds[r.resource].Group, Resource: r.resource}
}

// answer answers from the store. Watches end when cut is closed.
func (c *Cluster) answer(w http.ResponseWriter, req *http.Request, path string, cut <-chan struct{}) {
	r, known := read(req, path)
	if !known {
		http.NotFound(w, req)
		return
	}
	if isWatch(req) {
		c.watch(w, r, cut)
		return
	}
	if req.Method == http.MethodGet && r.name.Name == "" {
		c.list(w, r)
		return
	}
	answer, code, err := c.object(r)
	if err != nil {
		refuse(w, err)
		return
	}
	send(w, req, code, answer)
}

// object reads or writes one object.
func (c *Cluster) object(r request) (answer *stored, code int, err error) {
	code = http.StatusOK
	switch r.Method {
	case http.MethodPost:
		code = http.StatusCreated
		answer, err = c.create(r)
	case http.MethodPut, http.MethodPatch:
		answer, err = c.change(r)
	case http.MethodDelete:
		answer, err = c.remove(r)
	default:
		if answer = c.store.get(r.resource, r.name); answer == nil {
			err = apierrors.NewNotFound(r.group(), r.name.Name)
		}
	}
	return answer, code, err
}

func (c *Cluster) create(r request) (*stored, error) {
	o, err := decode(r)
	if err != nil {
		return nil, err
	}
	o.SetNamespace(r.name.Namespace)
	if r.name.Namespace != "" && c.store.get("namespaces", types.NamespacedName{Name: r.name.Namespace}) == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), r.name.Namespace)
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	return c.store.write(r.resource, name, func(old Object) (Object, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(r.group(), name.Name)
		}
		o.SetUID("")
		complete(o)
		if job, is := o.(*batchv1.Job); is {
			job.Status = batchv1.JobStatus{}
		}
		return o, nil
	})
}

// change replaces an object or patches it.
func (c *Cluster) change(r request) (*stored, error) {
	next, err := nextOf(r)
	if err != nil {
		return nil, err
	}
	return c.store.write(r.resource, r.name, func(old Object) (Object, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(r.group(), r.name.Name)
		}
		o, err := next(old)
		if err != nil {
			return nil, err
		}
		if version := o.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
			return nil, apierrors.NewConflict(r.group(), r.name.Name, errors.New("the object has been modified"))
		}
		if uid := o.GetUID(); uid != "" && uid != old.GetUID() {
			immutable := field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")
			return nil, apierrors.NewInvalid(kinds[r.resource].GroupKind(), r.name.Name, field.ErrorList{immutable})
		}
		return kept(old, o, r.subresource), nil
	})
}

// kept gives a Job's new state what a write of its status, or of the rest, doesn't change.
func kept(old, next Object, subresource string) Object {
	before, is := old.(*batchv1.Job)
	after, same := next.(*batchv1.Job)
	if !is || !same {
		return next
	}
	if subresource == "status" {
		after.Spec, after.Generation = before.Spec, before.Generation
		return after
	}
	after.Status, after.Generation = before.Status, before.Generation
	specs := [2]batchv1.Job{{Spec: before.Spec}, {Spec: after.Spec}}
	one, _ := specs[0].Marshal() // Kubernetes' own types can be encoded
	two, _ := specs[1].Marshal()
	if !slices.Equal(one, two) {
		after.Generation++
	}
	return after
}

func (c *Cluster) remove(r request) (*stored, error) {
	var options metav1.DeleteOptions
	if body, err := io.ReadAll(r.Body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	} else if len(body) > 0 {
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return c.store.write(r.resource, r.name, func(old Object) (Object, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(r.group(), r.name.Name)
		}
		if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != old.GetUID() {
			kind := schema.GroupResource{Group: r.group().Group, Resource: kinds[r.resource].Kind}
			return nil, apierrors.NewConflict(kind, r.name.Name, errors.New("the UID in the precondition isn't the object's"))
		}
		foreground := options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationForeground
		if foreground && !slices.Contains(old.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			old.SetFinalizers(append(old.GetFinalizers(), metav1.FinalizerDeleteDependents))
		}
		if len(old.GetFinalizers()) == 0 {
			return nil, nil
		}
		if old.GetDeletionTimestamp() == nil {
			now, grace := metav1.Now(), int64(0)
			old.SetDeletionTimestamp(&now)
			old.SetGeneration(old.GetGeneration() + 1)
			old.SetDeletionGracePeriodSeconds(&grace)
		}
		return old, nil
	})
}

// list answers in pages, if a limit asks for that: each is continued after the name in the token,
// with the version of the first.
func (c *Cluster) list(w http.ResponseWriter, r request) {
	matches, err := selectorOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	query := r.URL.Query()
	all, version, _ := c.store.list(r.resource)
	limit, _ := strconv.Atoi(query.Get("limit")) // none: 0
	first, after, continued := strings.Cut(query.Get("continue"), " ")
	if continued {
		version, _ = strconv.ParseUint(first, 10, 64) // it was written below
	}
	about := metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}
	var page []*stored
	for _, o := range all {
		if !matches(o) || continued && o.name.String() <= after {
			continue
		}
		if limit > 0 && len(page) == limit {
			about.Continue = about.ResourceVersion + " " + page[limit-1].name.String()
			break
		}
		page = append(page, o)
	}
	sendList(w, r, about, page)
}

func newUID() types.UID { return uuid.NewUUID() }

// refuse sends an error as the API server does.
func refuse(w http.ResponseWriter, err error) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	answer := status.Status()
	answer.Kind, answer.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(answer.Code))
	_ = json.NewEncoder(w).Encode(answer) // fails with the connection only
}
