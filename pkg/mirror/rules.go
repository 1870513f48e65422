package mirror

import "fmt"

// Rule names a condition that a status must satisfy before it reaches the hub. The names are
// stable, because they're label values of jobferry_status_rejected_total.
type Rule string

// rule is one row of a table. broken returns "" if the rule holds, or what is wrong, for an event.
type rule struct {
	name   Rule
	broken func(*reflection) string
}

func firstBroken(table []rule, r *reflection) (Violation, bool) {
	for _, rule := range table {
		if message := rule.broken(r); message != "" {
			return Violation{Rule: rule.name, Message: message}, true
		}
	}
	return Violation{}, false
}

// unless is the message of a rule that doesn't hold.
func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
