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
)

// apiRoot is the path of the API.
const apiRoot = "/apis/" + Group + "/" + Version

// call is one request, understood.
type call struct {
	key   types.NamespacedName
	sub   subresource
	query url.Values
}

// pattern of the paths that are calls, for http.ServeMux.
const pattern = apiRoot + "/namespaces/{namespace}/jobs/{name}/{subresource}"

// parseCall understands a request that matches pattern.
func parseCall(r *http.Request) (*call, error) {
	c := &call{key: types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}}
	var known bool
	if c.sub, known = lookUp(r.PathValue("subresource")); !known {
		return nil, unknownPath(r)
	}
	if !slices.Contains(c.sub.methods, r.Method) {
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: Group, Resource: "jobs/" + c.sub.name}, r.Method)
	}
	if len(validation.IsDNS1123Label(c.key.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(c.key.Name)) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q isn't the name of a Job in a namespace", c.key.String()))
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query can't be read: %v", err))
	}
	c.query = query
	return c, nil
}

func unknownPath(r *http.Request) error {
	names := make([]string, 0, len(all()))
	for _, s := range all() {
		names = append(names, s.name)
	}
	return &apierrors.StatusError{ErrStatus: failure(http.StatusNotFound, "NotFound", fmt.Sprintf(
		"there is nothing at %q: it's %s/namespaces/NAMESPACE/jobs/NAME/ with one of %s",
		shorten(r.URL.Path), apiRoot, strings.Join(names, ", ")))}
}

// always may be in any query: clients add them.
var always = []string{"timeout", "pretty"}

// only refuses parameters that aren't known. A misspelled one would else change what comes without
// a word.
func only(query url.Values, known ...string) error {
	var unknown []string
	for name := range query {
		if !slices.Contains(known, name) && !slices.Contains(always, name) {
			unknown = append(unknown, name)
		}
	}
	switch {
	case len(unknown) == 0:
		return nil
	case len(known) == 0:
		slices.Sort(unknown)
		return apierrors.NewBadRequest(fmt.Sprintf("unknown parameter %q: there are none", shorten(unknown[0])))
	default:
		slices.Sort(unknown)
		return apierrors.NewBadRequest(fmt.Sprintf("unknown parameter %q: there are %s", shorten(unknown[0]), strings.Join(known, ", ")))
	}
}
