"""The operator's calls about what agents may do: epoch, configuration, learned domains and paths, policy. No I/O."""

from collections.abc import Mapping, Sequence

from gateway_client.contract.learned import Cleared, LearnedDomain, LearnedPath, Removed
from gateway_client.contract.policy import Acl, Allowlisted, ExplainedCall
from gateway_client.contract.previews import CallPreview
from gateway_client.operating.calls import OperatorCalls, listed
from gateway_client.results import Epoch, PrincipalAcl, Reloaded, Revoked
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import UnprovenCall, path_of, query_of
from gateway_client.wire.flows import Flow


class AuthorityCore(OperatorCalls):
    """Every method gives a flow of one call and its typed result; what is special to a call stands below."""

    def revoke_all(self) -> Flow[Revoked]:
        """Raise the epoch: every earlier lease, grant and held plan is invalid at once."""
        answer = yield from self.change("POST", path_of("v1", "admin", "revoke-all"))
        return decode(Revoked, answer.json(), "revocation")

    def epoch(self) -> Flow[int]:
        """The revocation epoch in force."""
        answer = yield from self.read(path_of("v1", "admin", "epoch"))
        return decode(Epoch, answer.json(), "epoch").current_epoch

    def reload(self) -> Flow[Reloaded]:
        """Take manifests, policy, operators and principals anew, all or none. Raises GatewayFault reload_failed."""
        answer = yield from self.write(
            UnprovenCall("POST", path_of("v1", "admin", "reload")), self.limits.execute_timeout
        )
        return decode(Reloaded, answer.json(), "reload")

    def domains(self, action_id: str | None = None) -> Flow[tuple[LearnedDomain, ...]]:
        """Learned domains, of one action or of all."""
        answer = yield from self.read(path_of("v1", "admin", "domains"), query_of(action=action_id))
        return listed(LearnedDomain, answer, "domains")

    def add_domain(self, action_id: str, domain: str) -> Flow[LearnedDomain]:
        """Let an action reach a domain. Raises Invalid invalid_domain, Conflict domain_already_exists."""
        body = {"action_id": action_id, "domain": domain}
        answer = yield from self.change("POST", path_of("v1", "admin", "domains"), body)
        return decode(LearnedDomain, answer.json(), "domain")

    def remove_domain(self, action_id: str, domain: str) -> Flow[bool]:
        """True: it is gone. Raises NotFound domain_not_found."""
        body = {"action_id": action_id, "domain": domain}
        answer = yield from self.change("DELETE", path_of("v1", "admin", "domains"), body)
        return decode(Removed, answer.json(), "removal").removed

    def clear_domains(self, action_id: str | None = None) -> Flow[Cleared]:
        """Forget the learned domains of one action, or of all."""
        path = path_of("v1", "admin", "domains", "clear")
        answer = yield from self.change("DELETE", path, query=query_of(action=action_id))
        return decode(Cleared, answer.json(), "clearing")

    def paths(self, action_id: str | None = None) -> Flow[tuple[LearnedPath, ...]]:
        """Learned paths, of one action or of all."""
        answer = yield from self.read(path_of("v1", "admin", "paths"), query_of(action=action_id))
        return listed(LearnedPath, answer, "paths")

    def add_path(self, action_id: str, path: str) -> Flow[LearnedPath]:
        """Let an action reach a path. Raises Invalid invalid_path, Conflict path_already_exists."""
        body = {"action_id": action_id, "path": path}
        answer = yield from self.change("POST", path_of("v1", "admin", "paths"), body)
        return decode(LearnedPath, answer.json(), "path")

    def remove_path(self, action_id: str, path: str) -> Flow[bool]:
        """True: it is gone. Raises NotFound path_not_found."""
        body = {"action_id": action_id, "path": path}
        answer = yield from self.change("DELETE", path_of("v1", "admin", "paths"), body)
        return decode(Removed, answer.json(), "removal").removed

    def clear_paths(self, action_id: str | None = None) -> Flow[Cleared]:
        """Forget the learned paths of one action, or of all."""
        path = path_of("v1", "admin", "paths", "clear")
        answer = yield from self.change("DELETE", path, query=query_of(action=action_id))
        return decode(Cleared, answer.json(), "clearing")

    def policy(self) -> Flow[Acl]:
        """The access lists."""
        answer = yield from self.read(path_of("v1", "admin", "policy"))
        return decode(Acl, answer.json(), "access list")

    def principal(self, principal: str) -> Flow[PrincipalAcl]:
        """The rights of one principal, by risk. Raises NotFound principal_not_found."""
        answer = yield from self.read(path_of("v1", "admin", "policy", principal))
        return decode(PrincipalAcl, answer.json(), "principal")

    def explain(
        self,
        principal: str,
        action_id: str,
        request: Mapping[str, object] | None = None,
        calls_remaining: int | None = None,
    ) -> Flow[ExplainedCall]:
        """The decision on this call, were it made now; nothing is executed. Raises NotFound action_not_found."""
        given = {"request": request, "calls_remaining": calls_remaining}
        body: dict[str, object] = {"principal": principal, "action_id": action_id}
        body |= {name: value for name, value in given.items() if value is not None}
        answer = yield from self.change("POST", path_of("v1", "admin", "policy", "explain"), body)
        return decode(ExplainedCall, answer.json(), "explanation")

    def preview(
        self, action_id: str, principal: str, request: object = None, scopes: Sequence[str] | None = None
    ) -> Flow[CallPreview]:
        """The decision on this call and what it would send; nothing is executed. Raises NotFound action_not_found,
        Invalid schema_violation."""
        given = {"request": request, "scopes": None if scopes is None else list(scopes)}
        body: dict[str, object] = {"principal": principal}
        body |= {name: value for name, value in given.items() if value is not None}
        answer = yield from self.change("POST", path_of("v1", "admin", "actions", action_id, "preview"), body)
        return decode(CallPreview, answer.json(), "preview")

    def grant(self, principal: str, actions: list[str]) -> Flow[PrincipalAcl]:
        """Let a principal call these actions too. Raises Invalid unknown_action."""
        return (yield from self._change_principal("grant", principal, actions))

    def revoke(self, principal: str, actions: list[str]) -> Flow[PrincipalAcl]:
        """Take actions from a principal; what it keeps is the result. Its entry goes with the last one.

        Raises NotFound principal_not_found, Invalid unknown_action.
        """
        return (yield from self._change_principal("revoke", principal, actions))

    def allow(self, action_id: str, agent_id: str) -> Flow[Allowlisted]:
        """Spare a principal the approval of an action; every other rule still holds. Raises NotFound, Invalid."""
        return (yield from self._change_allowlist("POST", action_id, agent_id))

    def disallow(self, action_id: str, agent_id: str) -> Flow[Allowlisted]:
        """Ask for approval again. Raises NotFound allowlist_entry_not_found, Invalid."""
        return (yield from self._change_allowlist("DELETE", action_id, agent_id))

    def _change_principal(self, change: str, principal: str, actions: list[str]) -> Flow[PrincipalAcl]:
        body = {"principal": principal, "actions": list(actions)}
        answer = yield from self.change("POST", path_of("v1", "admin", "policy", change), body)
        return decode(PrincipalAcl, answer.json(), "principal")

    def _change_allowlist(self, method: str, action_id: str, agent_id: str) -> Flow[Allowlisted]:
        body = {"action_id": action_id, "agent_id": agent_id}
        answer = yield from self.change(method, path_of("v1", "admin", "policy", "allowlist"), body)
        return decode(Allowlisted, answer.json(), "allow-list entry")
