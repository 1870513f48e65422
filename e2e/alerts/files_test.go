package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// rule is an alert of the file.
type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func chartFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "charts", "jobferry", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.Unmarshal(chartFile(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	byName := map[string]rule{}
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			if _, twice := byName[r.Alert]; twice {
				t.Errorf("there are two alerts %s", r.Alert)
			}
			byName[r.Alert] = r
		}
	}
	if len(byName) == 0 {
		t.Fatal("there are no alerts")
	}
	return byName
}

// panel is what of a dashboard's panel matters here.
type panel struct {
	ID      int
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(chartFile(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// queries are all PromQL of the chart, by where it is. Grafana's variables are replaced by what
// they may stand for.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, r := range rules(t) {
		all["alert "+name] = r.Expr
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$worker", "east|west")
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			all["panel "+p.Title+": "+target.Expr] = variables.Replace(target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s asks nothing", p.Title)
		}
	}
	return all
}

// foreign are metrics that aren't Jobferry's own: controller-runtime's and the Go runtime's.
var foreign = []string{
	"controller_runtime_reconcile_errors_total", "leader_election_master_status", "process_resident_memory_bytes", "workqueue_depth",
}

var documented = regexp.MustCompile("(?m)^\\| `(jobferry_[a-z_]+)` \\| ([a-z]+) ")

// What is asked is PromQL, and asks for metrics that docs/reference/metrics.md has, or that
// controller-runtime makes.
func TestQueries(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Clone(foreign)
	for _, match := range documented.FindAllStringSubmatch(string(docs), -1) {
		known = append(known, match[1])
		if match[2] == "histogram" {
			known = append(known, match[1]+"_bucket", match[1]+"_count", match[1]+"_sum")
		}
	}
	for where, query := range queries(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok && !slices.Contains(known, selector.Name) {
				t.Errorf("%s: docs/reference/metrics.md has no %s", where, selector.Name)
			}
			return nil
		})
	}
}

// Each panel has its place.
func TestPanels(t *testing.T) {
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range panels(t) {
		if ids[p.ID] {
			t.Errorf("panel %s has the id %d of another", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %s and %s overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
