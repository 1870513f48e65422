package dispatchedjobs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/jobview"
)

type jobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []jobview.DispatchedJob `json:"items"`
}

func (l jobList) names() string {
	var names []string
	for _, item := range l.Items {
		names = append(names, item.Name)
	}
	return strings.Join(names, " ")
}

func readList(t *testing.T, s *Server, query string) jobList {
	t.Helper()
	w := httptest.NewRecorder()
	if err := s.List(w, get(query), "team", options(t, query)); err != nil {
		t.Fatal(err)
	}
	var l jobList
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil || l.Kind != "DispatchedJobList" {
		t.Fatalf("no list: %v: %s", err, w.Body)
	}
	return l
}

// A list without a limit is made of pages, and is one all the same.
func TestAListWithoutALimit(t *testing.T) {
	s, hub := newServer()
	asked := inPages(hub, []batchv1.Job{*job("a", "1"), *job("plain", "2", plain)}, nil, []batchv1.Job{*job("b", "3")})
	l := readList(t, s, "resourceVersion=0&resourceVersionMatch=NotOlderThan")
	if l.names() != "a b" || l.Continue != "" || l.ResourceVersion != "50" || l.Items[0].Kind != "DispatchedJob" {
		t.Errorf("%+v", l)
	}
	for i, want := range []string{"", "page 1", "page 2"} {
		if o := (*asked)[i]; o.Limit != pageSize || o.Continue != want || o.ResourceVersion != "" || o.ResourceVersionMatch != "" {
			t.Errorf("request %d: %+v", i, o)
		}
	}
}

// A page is one of the hub's, even if nothing in it is Jobferry's.
func TestAPage(t *testing.T) {
	s, hub := newServer()
	asked := inPages(hub, []batchv1.Job{*job("plain", "2", plain)}, nil)
	l := readList(t, s, "limit=1&continue=here&labelSelector=a%3Db&resourceVersion=7&resourceVersionMatch=Exact")
	if l.names() != "" || l.Items == nil || l.Continue != "page 1" {
		t.Errorf("%+v", l)
	}
	if o := (*asked)[0]; o.Limit != 1 || o.Continue != "here" || o.LabelSelector != "a=b" || o.ResourceVersion != "7" || o.ResourceVersionMatch != "Exact" {
		t.Errorf("%+v", o)
	}
}

func TestATable(t *testing.T) {
	s, hub := newServer()
	inPages(hub, []batchv1.Job{*job("a", "1"), *job("b", "3", complete)})
	s.reasons.apply("ADDED", event("a", "Pending", "0/2 clusters", 1))
	w := httptest.NewRecorder()
	if err := s.List(w, get("", asTable), "team", options(t, "")); err != nil {
		t.Fatal(err)
	}
	want := `Name|Worker|State|Succeeded|Active|Duration|Age|Ready|Failed|Workers|Moved From|Selector|Why
a - Pending 0/1 0 - - - 0 - - - 0/2 clusters
b - Complete 0/1 0 - - - 0 - - - `
	if got := table(t, w.Body.Bytes()); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if !strings.Contains(w.Body.String(), `"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"team"`) {
		t.Errorf("no metadata: %s", w.Body)
	}
}

func TestForm(t *testing.T) {
	for name, row := range map[string]struct {
		accept, query string
		table         bool
		code          int32
	}{
		"kubectl get":         {asTable, "", true, 0},
		"kubectl get -o yaml": {"application/json", "", false, 0},
		"curl":                {"*/*", "", false, 0},
		"client-go":           {"application/vnd.kubernetes.protobuf,application/json", "", false, 0},
		"an old table first":  {"application/json;as=Table;v=v1beta1;g=meta.k8s.io, " + asTable, "", true, 0},
		"metadata informers":  {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "", false, http.StatusNotAcceptable},
		"protobuf alone":      {"application/vnd.kubernetes.protobuf", "", false, http.StatusNotAcceptable},
		"what isn't a type":   {";;;", "", false, http.StatusNotAcceptable},
		"a bad include":       {asTable, "includeObject=All", false, http.StatusBadRequest},
	} {
		f, err := formOf(get("", row.accept).Header, get(row.query).URL.Query())
		if f.table != row.table || code(err) != row.code {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func code(err error) int32 {
	if said, ok := err.(apierrors.APIStatus); ok {
		return said.Status().Code
	}
	return 0
}

func TestParseOptions(t *testing.T) {
	for query, want := range map[string]int32{
		"":                                       0,
		"fieldSelector=metadata.name%3Da":        0,
		"fieldSelector=metadata.namespace!%3Da":  0,
		"fieldSelector=status.successful%3D1":    http.StatusBadRequest,
		"fieldSelector=%3D%3D%3D":                http.StatusBadRequest,
		"labelSelector=a+in":                     http.StatusBadRequest,
		"limit=many":                             http.StatusBadRequest,
		"limit=-1":                               http.StatusBadRequest,
		"labelSelector=a+in+(b)&limit=5&watch=1": 0,
	} {
		if _, err := ParseOptions(get(query).URL.Query()); code(err) != want {
			t.Errorf("%s: %v", query, err)
		}
	}
	if got := options(t, "fieldSelector=metadata.name%3Da").Name(); got != "a" {
		t.Errorf("name %q", got)
	}
}

func TestGet(t *testing.T) {
	s, _ := newServer(job("a", "1"), job("plain", "2", plain))
	for name, want := range map[string]int32{"a": 0, "plain": http.StatusNotFound, "missing": http.StatusNotFound} {
		w := httptest.NewRecorder()
		if err := s.Get(w, get(""), types.NamespacedName{Namespace: "team", Name: name}, nil); code(err) != want || (want == 0) != (w.Body.Len() > 0) {
			t.Errorf("%s: %v, %s", name, err, w.Body)
		}
	}
}
