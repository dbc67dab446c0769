/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Errors in the blocks of weft/activity.h that a compiler does not see. The blocks are loops that run once, so a
 * `break` or `continue` in a block is legal C with an unexpected effect. This plugin of clang examines the syntax tree,
 * and reports
 *
 *   break, continue           in a block of no_yield or no_implicit_yield: they leave the block, not the loop
 *   break, return, goto       out of a block of activate: the activity has no function to continue in
 *   a variable by reference   a warning, if the activity may still use it when its scope ends without a wait, when a
 *                             return comes before the wait, or when the loop around the block changes it
 *
 * The pass finds most of the second kind, too; here the words and the place come from the source.
 */
#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/Basic/Version.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendPluginRegistry.h"
/* A visitor of ten thousand functions. Since version 20 clang has such a visitor compiled in, which saves compiling
 * all of them. */
#if CLANG_VERSION_MAJOR >= 20
#include "clang/AST/DynamicRecursiveASTVisitor.h"
#define VISITED override
#else
#include "clang/AST/RecursiveASTVisitor.h"
#define VISITED
#endif

#include <set>
#include <string>

using namespace clang;

namespace
{
enum Kind { None, Activate, NoYield, NoImplicit };

/* The macros' loops are recognised by their variables' names. */
Kind kindOf(const Stmt *S)
{
	auto *Loop = dyn_cast_or_null<ForStmt>(S);
	auto *Declaration = Loop ? dyn_cast_or_null<DeclStmt>(Loop->getInit()) : nullptr;
	auto *Mark =
	    Declaration && Declaration->isSingleDecl() ? dyn_cast<VarDecl>(Declaration->getSingleDecl()) : nullptr;
	StringRef Name = Mark && Mark->getIdentifier() ? Mark->getName() : "";

	return Name.starts_with("weft__activate_")	? Activate
	       : Name.starts_with("weft__no_yield_")	? NoYield
	       : Name.starts_with("weft__no_implicit_") ? NoImplicit
							: None;
}

const char *nameOf(Kind K)
{
	return K == Activate ? "activate" : K == NoYield ? "no_yield" : "no_implicit_yield";
}

#if CLANG_VERSION_MAJOR >= 20
using Visitor = DynamicRecursiveASTVisitor;
#else
class Checker;
using Visitor = RecursiveASTVisitor<Checker>;
#endif

class Checker : public Visitor
{
      public:
	explicit Checker(CompilerInstance &CI) : D(CI.getDiagnostics()), SM(CI.getSourceManager())
	{
	}

	bool TraverseDecl(Decl *What) VISITED
	{
		if (What && SM.isInSystemHeader(What->getLocation()))
			return true;
		return Visitor::TraverseDecl(What);
	}

	bool VisitForStmt(ForStmt *Loop) VISITED
	{
		Kind K = kindOf(Loop);

		if (K != None) {
			std::set<const LabelDecl *> Own;
			labels(Loop->getBody(), Own);
			leaves(Loop->getBody(), K, true, true, Own);
		}
		return true;
	}

	bool VisitCompoundStmt(CompoundStmt *Block) VISITED
	{
		for (auto I = Block->body_begin(); I != Block->body_end(); ++I)
			if (kindOf(*I) == Activate) {
				outlives(Block, I);
				returnsEarly(Block, I);
			}
		return true;
	}

	bool TraverseForStmt(ForStmt *Loop) VISITED
	{
		if (kindOf(Loop) == None)
			changesShared(Loop, Loop->getBody());
		return Visitor::TraverseForStmt(Loop);
	}

      private:
	DiagnosticsEngine &D;
	SourceManager &SM;

	void say(DiagnosticsEngine::Level Level, SourceLocation At, const std::string &Text)
	{
		unsigned ID = D.getDiagnosticIDs()->getCustomDiagID((DiagnosticIDs::Level)Level, Text);

		D.Report(SM.getFileLoc(At), ID);
	}

	static void labels(const Stmt *S, std::set<const LabelDecl *> &Own)
	{
		if (!S)
			return;
		if (auto *L = dyn_cast<LabelStmt>(S))
			Own.insert(L->getDecl());
		for (const Stmt *C : S->children())
			labels(C, Own);
	}

	/* Would a break, or a continue, at S belong to the macro's loop? */
	void leaves(const Stmt *S, Kind K, bool Break, bool Continue, const std::set<const LabelDecl *> &Own)
	{
		if (!S || isa<Expr>(S))
			return inExpression(S, K, Own);
		if (isa<BreakStmt>(S) && Break)
			return K == Activate ? left(S, "break") : once(S, K, "break");
		if (isa<ContinueStmt>(S) && Continue && K != Activate)
			return once(S, K, "continue");
		if (isa<ReturnStmt>(S) && K == Activate)
			return left(S, "return");
		if (auto *G = dyn_cast<GotoStmt>(S); G && K == Activate && !Own.count(G->getLabel()))
			return left(S, "goto");
		if (isa<IndirectGotoStmt>(S) && K == Activate)
			return left(S, "a computed goto");
		/* An inner block reports its own breaks; a return out of the outer block is found here. */
		bool Loop = isa<ForStmt>(S) || isa<WhileStmt>(S) || isa<DoStmt>(S);
		if (kindOf(S) == Activate)
			return;
		for (const Stmt *C : S->children())
			leaves(C, K, Break && !Loop && !isa<SwitchStmt>(S), Continue && !Loop, Own);
	}

	/* Visits statements in expressions of gcc, but not functions within (blocks, lambdas), which are separate. */
	void inExpression(const Stmt *S, Kind K, const std::set<const LabelDecl *> &Own)
	{
		if (!S || isa<BlockExpr>(S) || isa<LambdaExpr>(S))
			return;
		if (auto *E = dyn_cast<StmtExpr>(S))
			return leaves(E->getSubStmt(), K, false, false, Own);
		for (const Stmt *C : S->children())
			leaves(C, K, false, false, Own);
	}

	void left(const Stmt *S, const char *Word)
	{
		say(DiagnosticsEngine::Error, S->getBeginLoc(),
		    std::string(Word) +
			" leaves the block of activate, where the activity cannot go on: use continue to end the "
			"activity");
	}

	void once(const Stmt *S, Kind K, const char *Word)
	{
		say(DiagnosticsEngine::Error, S->getBeginLoc(),
		    std::string(Word) + " ends only the block of " + nameOf(K) +
			", not the loop around it: use goto, or a variable "
			"that is asked behind the block");
	}

	/* ---- variables that end before the activity ---- */

	/* Does S call a function whose name begins with Start? */
	static bool callsLike(const Stmt *S, StringRef Start)
	{
		if (!S)
			return false;
		if (auto *Call = dyn_cast<CallExpr>(S))
			if (auto *F = Call->getDirectCallee();
			    F && F->getIdentifier() && F->getName().starts_with(Start))
				return true;
		return llvm::any_of(S->children(), [&](const Stmt *C) { return callsLike(C, Start); });
	}

	static void uses(const Stmt *S, std::set<const VarDecl *> &Used)
	{
		if (!S)
			return;
		if (auto *R = dyn_cast<DeclRefExpr>(S))
			if (auto *V = dyn_cast<VarDecl>(R->getDecl()); V && V->hasLocalStorage())
				Used.insert(V);
		for (const Stmt *C : S->children())
			uses(C, Used);
	}

	/* The variables that the activity shares with the function around it: it uses them, and does not list them. */
	std::set<const VarDecl *> shared(ForStmt *Loop)
	{
		std::set<const VarDecl *> Used, Listed, Shared;

		uses(Loop->getBody(), Used);
		uses(Loop->getInit(), Listed);
		for (const VarDecl *V : Used)
			if (!Listed.count(V) && SM.isBeforeInTranslationUnit(V->getLocation(), Loop->getBeginLoc()))
				Shared.insert(V);
		return Shared;
	}

	static bool waits(const Stmt *S)
	{
		return callsLike(S, "weft_activity_") || callsLike(S, "weft__activity_");
	}

	/* The first return in S that is not behind a wait. Waited: code that follows S is behind a wait. */
	static const ReturnStmt *earlyReturn(const Stmt *S, bool &Waited)
	{
		if (!S || Waited || isa<LambdaExpr>(S) || kindOf(S) == Activate)
			return nullptr;
		if (auto *R = dyn_cast<ReturnStmt>(S)) {
			Waited = waits(R);
			return Waited ? nullptr : R;
		}
		if (auto *If = dyn_cast<IfStmt>(S)) {
			bool Then = Waited = waits(If->getCond()), Else = Waited;
			const ReturnStmt *Found = earlyReturn(If->getThen(), Then);

			if (!Found)
				Found = earlyReturn(If->getElse(), Else);
			Waited = Waited || (Then && Else);
			return Found;
		}
		/* A loop may have waited for all activities. */
		if (!isa<CompoundStmt>(S) && !isa<LabelStmt>(S)) {
			const ReturnStmt *Found = nullptr;

			Waited = waits(S);
			for (const Stmt *C : S->children())
				if (!Found && !Waited)
					Found = earlyReturn(C, Waited);
			return Found;
		}
		for (const Stmt *C : S->children())
			if (const ReturnStmt *Found = earlyReturn(C, Waited))
				return Found;
		return nullptr;
	}

	/* The function waits for the activity behind its block, but not if it returns before. */
	void returnsEarly(CompoundStmt *Block, CompoundStmt::body_iterator At)
	{
		std::set<const VarDecl *> Shared = shared(cast<ForStmt>(*At));
		bool Waited = false, Any = false;

		for (auto I = At + 1; I != Block->body_end(); ++I)
			Any |= waits(*I);
		if (!Any || Shared.empty())
			return;
		for (auto I = At + 1; I != Block->body_end() && !Waited; ++I)
			if (const ReturnStmt *R = earlyReturn(*I, Waited)) {
				say(DiagnosticsEngine::Warning, R->getBeginLoc(),
				    "returns while the activity may still use '" +
					(*Shared.begin())->getNameAsString() + "': wait for it first");
				return;
			}
	}

	/* Does the loop's head change V? */
	static bool changes(const Stmt *S, const VarDecl *V)
	{
		if (!S)
			return false;
		auto Is = [&](const Expr *E) {
			auto *R = dyn_cast<DeclRefExpr>(E->IgnoreParenImpCasts());
			return R && R->getDecl() == V;
		};
		if (auto *U = dyn_cast<UnaryOperator>(S); U && U->isIncrementDecrementOp() && Is(U->getSubExpr()))
			return true;
		if (auto *B = dyn_cast<BinaryOperator>(S); B && B->isAssignmentOp() && Is(B->getLHS()))
			return true;
		return llvm::any_of(S->children(), [&](const Stmt *C) { return changes(C, V); });
	}

	/* A block of activate in S, the body of a loop whose head changes a variable that the activity shares. */
	void changesShared(ForStmt *Outer, const Stmt *S)
	{
		auto *Loop = dyn_cast_or_null<ForStmt>(S);

		if (!S || isa<LambdaExpr>(S))
			return;
		if (kindOf(S) != Activate) {
			bool Before = false;

			/* If the function waits in the loop's body, no activity is left when the loop continues. */
			if (isa<CompoundStmt>(S))
				for (const Stmt *C : S->children()) {
					if (Before && waits(C) && kindOf(C) != Activate)
						return;
					Before |= kindOf(C) == Activate;
				}
			for (const Stmt *C : S->children())
				changesShared(Outer, C);
			return;
		}
		for (const VarDecl *V : shared(const_cast<ForStmt *>(Loop)))
			if (changes(Outer->getInc(), V)) {
				say(DiagnosticsEngine::Warning, Loop->getBeginLoc(),
				    "the activity shares '" + V->getNameAsString() +
					"', which the loop around it changes: list it");
				return;
			}
	}

	/* Any wait behind the block, in the scope of the variable, may wait for the activity. */
	void outlives(CompoundStmt *Block, CompoundStmt::body_iterator At)
	{
		auto *Loop = cast<ForStmt>(*At);
		std::set<const VarDecl *> Shared = shared(Loop);

		for (auto I = At + 1; I != Block->body_end(); ++I)
			if (waits(*I))
				return;
		for (Stmt *S : Block->body()) {
			auto *Declaration = dyn_cast<DeclStmt>(S);

			if (S == Loop || !Declaration)
				continue;
			for (Decl *One : Declaration->decls())
				if (auto *V = dyn_cast<VarDecl>(One); V && Shared.count(V))
					say(DiagnosticsEngine::Warning, Loop->getBeginLoc(),
					    "the activity shares '" + V->getNameAsString() +
						"', whose scope may end before the activity does: list it, wait before "
						"the scope ends, or declare it further out");
		}
	}
};

class Consumer : public ASTConsumer
{
      public:
	explicit Consumer(CompilerInstance &CI) : CI(CI)
	{
	}
	void HandleTranslationUnit(ASTContext &Context) override
	{
		Checker(CI).TraverseDecl(Context.getTranslationUnitDecl());
	}

      private:
	CompilerInstance &CI;
};

class Action : public PluginASTAction
{
      protected:
	std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &CI, llvm::StringRef) override
	{
		return std::make_unique<Consumer>(CI);
	}
	bool ParseArgs(const CompilerInstance &, const std::vector<std::string> &) override
	{
		return true;
	}
	ActionType getActionType() override
	{
		return AddBeforeMainAction;
	}
};
} // namespace

static FrontendPluginRegistry::Add<Action> Registered("weft-activities", "checks the blocks of weft/activity.h");
