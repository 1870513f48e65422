package dispatchedjobs

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/jobview"
)

// APIVersion of DispatchedJobs.
const APIVersion = "subresources.jobferry.dev/v1alpha1"

// form is what a client gets a Job as: an object, or a row of a table.
type form struct {
	table bool
	// include is which part of the object a row has.
	include metav1.IncludeObjectPolicy
}

// formOf reads what a client accepts, in its order.
func formOf(header http.Header, query url.Values) (form, error) {
	f := form{include: metav1.IncludeObjectPolicy(query.Get("includeObject"))}
	policies := []metav1.IncludeObjectPolicy{"", metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject}
	if !slices.Contains(policies, f.include) {
		return f, apierrors.NewBadRequest("includeObject: it's one of None, Metadata, Object")
	}
	accepts := strings.Join(header.Values("Accept"), ",")
	if accepts == "" {
		return f, nil
	}
	for _, accepted := range strings.Split(accepts, ",") {
		media, params, err := mime.ParseMediaType(accepted)
		isJSON := media == runtime.ContentTypeJSON || media == "application/*" || media == "*/*"
		switch {
		case err != nil || !isJSON:
		case params["as"] == "":
			return f, nil
		case params["as"] == "Table" && params["g"] == metav1.GroupName && params["v"] == "v1":
			f.table = true
			return f, nil
		}
	}
	return f, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", resource, "",
		"only application/json is served, as the object or as a Table of meta.k8s.io/v1", 0, true)
}

// kind is the type of a response.
func (f form) kind(object string) metav1.TypeMeta {
	if f.table {
		return metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()}
	}
	return metav1.TypeMeta{Kind: object, APIVersion: APIVersion}
}

// one makes the response of a single Job; withColumns matters to a table.
func (f form) one(job *jobview.DispatchedJob, now time.Time, withColumns bool) (any, error) {
	item, err := f.item(job, now)
	row, isRow := item.(metav1.TableRow)
	if err != nil || !isRow {
		return item, err
	}
	t := metav1.Table{TypeMeta: f.kind(""), ListMeta: metav1.ListMeta{ResourceVersion: job.ResourceVersion}, Rows: []metav1.TableRow{row}}
	if withColumns {
		t.ColumnDefinitions = columns()
	}
	return t, nil
}

// item makes a Job one of several in a response.
func (f form) item(job *jobview.DispatchedJob, now time.Time) (any, error) {
	if f.table {
		return f.row(job, now)
	}
	job.TypeMeta = f.kind("DispatchedJob")
	return job, nil
}

func columns() []metav1.TableColumnDefinition {
	var definitions []metav1.TableColumnDefinition
	for _, c := range jobview.Columns {
		d := metav1.TableColumnDefinition{Name: c.Name, Type: "string", Description: c.Description}
		if c.Name == "Name" {
			d.Format = "name"
		}
		if c.Wide {
			d.Priority = 1
		}
		definitions = append(definitions, d)
	}
	return definitions
}

func (f form) row(job *jobview.DispatchedJob, now time.Time) (metav1.TableRow, error) {
	row := metav1.TableRow{}
	for _, c := range jobview.Columns {
		row.Cells = append(row.Cells, fmt.Sprint(c.Cell(job, now)))
	}
	var object any
	switch f.include {
	case metav1.IncludeNone:
		return row, nil
	case metav1.IncludeObject:
		job.TypeMeta = form{}.kind("DispatchedJob")
		object = job
	default:
		object = metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
			ObjectMeta: job.ObjectMeta,
		}
	}
	content, err := json.Marshal(object)
	row.Object = runtime.RawExtension{Raw: content}
	return row, err
}
