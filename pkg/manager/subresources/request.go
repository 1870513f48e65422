package subresources

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/jobferry/jobferry/pkg/manager/subresources/dispatchedjobs"
)

// apiRoot is the path of the API.
const apiRoot = "/apis/" + Group + "/" + Version

// request is a parsed request for a subresource.
type request struct {
	key   types.NamespacedName
	sub   subresource
	query url.Values
	// list has the options of a list or watch of dispatchedjobs.
	list *dispatchedjobs.Options
	// user is whom the hub authenticated.
	user user.Info
	// ofNode: it comes from package kubelet, authorized. The user is an API server, which asks for
	// many, of the Job with jobUID.
	ofNode bool
	jobUID types.UID
}

// pattern matches the paths of subresources, for http.ServeMux.
const pattern = apiRoot + "/namespaces/{namespace}/jobs/{name}/{subresource}"

// parseRequest parses a request that matches pattern.
func parseRequest(r *http.Request, u user.Info) (*request, error) {
	req := &request{user: u, key: types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}}
	var known bool
	if req.sub, known = lookUp(r.PathValue("subresource")); !known {
		return nil, unknownPath(r)
	}
	if !slices.Contains(req.sub.methods, r.Method) {
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: Group, Resource: "jobs/" + req.sub.name}, r.Method)
	}
	if len(validation.IsDNS1123Label(req.key.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(req.key.Name)) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q isn't the name of a Job in a namespace", req.key.String()))
	}
	var err error
	if req.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query can't be read: %v", err))
	}
	return req, nil
}

func unknownPath(r *http.Request) error {
	names := make([]string, 0, len(all()))
	for _, s := range all() {
		names = append(names, s.name)
	}
	return notFound("there is nothing at %q: it's %s/namespaces/NAMESPACE/jobs/NAME/ with one of %s, or .../%s",
		shorten(r.URL.Path), apiRoot, strings.Join(names, ", "), dispatchedJobsName)
}

// commonParams are added by clients to any query.
var commonParams = []string{"timeout", "pretty"}

// checkParams refuses unknown parameters: a misspelled one would silently have no effect.
func (r *request) checkParams() error {
	known := r.sub.params
	var unknown []string
	for name := range r.query {
		if !slices.Contains(known, name) && !slices.Contains(commonParams, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("unknown parameter %q; known: %s", shorten(slices.Min(unknown)), strings.Join(known, ", ")))
}
