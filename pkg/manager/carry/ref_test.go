package carry

import (
	"os"
	"strings"
	"testing"
)

// The quota that tenants are to have counts all that the manager carries.
func TestTheQuotaCountsWhatIsCarried(t *testing.T) {
	for _, file := range []string{"../../../config/samples/tenant.yaml", "../../../docs/how-to/operate.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []Kind{ConfigMap, Secret, Service, ServiceAccount} {
			if counted := "count/" + strings.ToLower(string(kind)) + "s:"; !strings.Contains(string(text), counted) {
				t.Errorf("%s lacks %s", file, counted)
			}
		}
	}
}
