package dispatchedjobs

import (
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// Parameters of a request.
var (
	GetParams  = []string{"resourceVersion", "includeObject"}
	ListParams = []string{
		"labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "timeoutSeconds",
		"watch", "allowWatchBookmarks", "sendInitialEvents", "includeObject",
	}
)

// fieldLabels are those by which Jobs can be selected here.
var fieldLabels = []string{"metadata.name", "metadata.namespace"}

// Options of a list or watch.
type Options struct {
	metav1.ListOptions

	labels labels.Selector
	fields fields.Selector
}

// ParseOptions reads the parameters of a list or watch.
func ParseOptions(query url.Values) (*Options, error) {
	o := &Options{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &o.ListOptions, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var err error
	if o.labels, err = selectors.Parse(o.LabelSelector); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	if o.fields, err = selectors.ParseFields(o.FieldSelector); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	for _, r := range o.fields.Requirements() {
		if !slices.Contains(fieldLabels, r.Field) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %q; supported: %v", r.Field, fieldLabels))
		}
	}
	if o.Limit < 0 {
		return nil, apierrors.NewBadRequest("limit: must not be negative")
	}
	return o, nil
}

// Name is the only name that the options select, or empty.
func (o *Options) Name() string {
	name, _ := o.fields.RequiresExactMatch("metadata.name")
	return name
}

// match reports whether the options select an object.
func (o *Options) match(of metav1.Object) bool {
	return o.labels.Matches(labels.Set(of.GetLabels())) &&
		o.fields.Matches(fields.Set{"metadata.name": of.GetName(), "metadata.namespace": of.GetNamespace()})
}
