package subresources

import (
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
)

const dispatchedJobsName = "dispatchedjobs"

// dispatchedJobsPatterns match the paths of dispatchedjobs, for http.ServeMux.
var dispatchedJobsPatterns = []string{
	apiRoot + "/" + dispatchedJobsName,
	apiRoot + "/namespaces/{namespace}/" + dispatchedJobsName,
	apiRoot + "/namespaces/{namespace}/" + dispatchedJobsName + "/{name}",
}

// dispatchedJobs is what a user does with the resource, as if it were a subresource: the same
// filters apply.
func dispatchedJobs(verb string) subresource {
	s := subresource{name: dispatchedJobsName, verb: verb, whole: true, stream: verb == "watch", params: dispatchedjobs.ListParams}
	if verb == "get" {
		s.params = dispatchedjobs.GetParams
	}
	s.serve = func(h *handler, w *responseWriter, r *http.Request, req *request) error {
		setHeaders(w, "application/json")
		switch verb {
		case "get":
			return h.jobs.Get(w, r, req.key, req.query)
		case "list":
			return h.jobs.List(w, r, req.key.Namespace, req.list)
		default:
			return h.jobs.Watch(w, r, req.key.Namespace, req.list)
		}
	}
	return s
}

// parseDispatchedJobs parses a request that matches one of dispatchedJobsPatterns.
func parseDispatchedJobs(r *http.Request, u user.Info) (*request, error) {
	if r.Method != http.MethodGet {
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: Group, Resource: dispatchedJobsName}, r.Method)
	}
	req := &request{user: u, key: types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}}
	if req.key.Namespace != "" && len(validation.IsDNS1123Label(req.key.Namespace)) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q isn't the name of a namespace", shorten(req.key.Namespace)))
	}
	var err error
	if req.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query can't be read: %v", err))
	}
	if req.key.Name != "" {
		if len(validation.IsDNS1123Subdomain(req.key.Name)) > 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q isn't the name of a Job", shorten(req.key.Name)))
		}
		req.sub = dispatchedJobs("get")
		return req, nil
	}
	if req.list, err = dispatchedjobs.ParseOptions(req.query); err != nil {
		return nil, err
	}
	// As in the hub's API server: who may read one Job by its name may select it.
	req.key.Name = req.list.Name()
	req.sub = dispatchedJobs("list")
	if req.list.Watch {
		req.sub = dispatchedJobs("watch")
	}
	return req, nil
}
