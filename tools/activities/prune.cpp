/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * With -flto, when the whole program is known: twins call twins of other files directly, and twins that no activity can
 * reach are dropped.
 *
 * When a file is compiled, each function that other files can see has words in front of it that say where its twin is,
 * because any file may call it by a pointer. So its twin stays as long as the function does, though most functions are
 * called by name only, and most programs run few of them in activities.
 *
 * A twin is reached if plain code refers to it (the block of `activate`), or if a twin that is reached calls it by
 * name. Once such a twin calls by a pointer, each twin of a function that a pointer may lead to is reached. The words
 * in front of all other functions are removed. Functions that other libraries, or objects compiled without -flto, can
 * see do not change.
 */
#include "pass.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace weft
{
/* The twin that the words in front of F describe, or null. */
static Function *announced(Function &F)
{
	auto *Words = F.hasPrefixData() ? dyn_cast<ConstantStruct>(F.getPrefixData()) : nullptr;
	auto *First = Words && Words->getNumOperands() == 3 ? dyn_cast<ConstantInt>(Words->getOperand(0)) : nullptr;

	if (!First || First->getValue() != Magic)
		return nullptr;
	/* trunc (sub (ptrtoint twin, ptrtoint F)) */
	auto *Distance = dyn_cast<ConstantExpr>(Words->getOperand(1));
	auto *Difference = Distance ? dyn_cast<ConstantExpr>(Distance->getOperand(0)) : nullptr;
	auto *Address = Difference ? dyn_cast<ConstantExpr>(Difference->getOperand(0)) : nullptr;
	return Address ? dyn_cast<Function>(Address->getOperand(0)->stripPointerCastsAndAliases()) : nullptr;
}

/* Is C needed only for the words in front of F, or not at all? */
static bool inFrontOnly(Constant &C, Function &F)
{
	return all_of(C.users(), [&](User *U) {
		auto *Part = dyn_cast<Constant>(U);

		return U == &F || (Part && !isa<GlobalValue>(Part) && inFrontOnly(*Part, F));
	});
}

/* May there be a pointer to F? Calls by name, and the words in front of it, make no pointer. */
static bool pointedTo(Function &F)
{
	return any_of(F.uses(), [&](Use &U) {
		auto *Call = dyn_cast<CallBase>(U.getUser());
		auto *Part = dyn_cast<Constant>(U.getUser());

		if (Call)
			return !Call->isCallee(&U);
		return !Part || isa<GlobalValue>(Part) || !inFrontOnly(*Part, F);
	});
}

class Reach
{
      public:
	explicit Reach(Module &M);
	bool has(Function *Twin) const
	{
		return Twins.contains(Twin);
	}

      private:
	SetVector<Function *> Twins; /* and functions that jump to one */
	SmallPtrSet<Constant *, 32> Seen;
	bool ByPointer = false;

	void constant(Constant *C, bool ByTwin);
	void body(Function &F);
	void given(Function *F, unsigned N);
};

static bool isTwin(Function &F)
{
	return F.hasFnAttribute(TwinAttribute) || F.hasFnAttribute(EitherAttribute);
}

/* C is read or called. A twin may give a pointer to the runtime, which calls its target in an activity. */
void Reach::constant(Constant *C, bool ByTwin)
{
	if (auto *A = dyn_cast<GlobalAlias>(C))
		C = A->getAliaseeObject();
	if (auto *F = dyn_cast_or_null<Function>(C)) {
		if (Function *Twin = isTwin(*F) ? F : ByTwin ? announced(*F) : nullptr)
			Twins.insert(Twin);
	} else if (C && !isa<GlobalVariable>(C) && Seen.insert(C).second) {
		for (Value *Part : C->operand_values())
			if (auto *Operand = dyn_cast<Constant>(Part))
				constant(Operand, ByTwin);
	}
}

void Reach::body(Function &F)
{
	bool ByTwin = F.hasFnAttribute(TwinAttribute);

	if (GlobalValue *Chosen = chosenBy(F)) {
		constant(Chosen, true);
		ByPointer |= isa<GlobalIFunc>(Chosen);
	}
	for (Instruction &I : instructions(F)) {
		auto *Call = dyn_cast<CallBase>(&I);

		/* weft__activity_pointer is called with the arguments of the pointer's target. */
		if (ByTwin && Call && (Call->isIndirectCall() || Call->getCalledOperand()->getName() == Pointer))
			ByPointer = true;
		for (Use &U : I.operands())
			if (auto *C = dyn_cast<Constant>(&U))
				constant(C, ByTwin && !(Call && Call->isCallee(&U)));
	}
}

/* The runtime calls, in an activity, the function that F gets as argument number N. */
void Reach::given(Function *F, unsigned N)
{
	if (!F)
		return;
	for (User *U : F->users()) {
		auto *Call = dyn_cast<CallBase>(U);
		auto *C = Call && Call->getCalledFunction() == F ? dyn_cast<Constant>(Call->getArgOperand(N)) : nullptr;

		if (C)
			constant(C, true);
		else
			ByPointer = true;
	}
}

Reach::Reach(Module &M)
{
	/* Lists of symbols to keep do not say who calls them. */
	for (GlobalVariable &G : M.globals())
		if (G.hasInitializer() && !G.getName().starts_with("llvm."))
			constant(G.getInitializer(), false);
	for (Function &F : M)
		if (!isTwin(F))
			body(F);
		else if (!F.isDeclaration() && !F.hasLocalLinkage())
			Twins.insert(&F);
	Seen.clear();
	given(M.getFunction("weft_activity_main"), 0);
	given(M.getFunction("weft_activity_run"), 1);
	given(M.getFunction("weft_activity_post"), 1);
	for (Function &F : M)
		if (Function *Twin = announced(F); Twin && !F.hasLocalLinkage())
			Twins.insert(Twin);
	for (size_t Done = 0; Done < Twins.size();) {
		while (Done < Twins.size())
			body(*Twins[Done++]);
		for (Function &F : M)
			if (Function *Twin = announced(F); Twin && ByPointer && pointedTo(F))
				Twins.insert(Twin);
	}
}

PreservedAnalyses Prune::run(Module &M, ModuleAnalysisManager &)
{
	SmallPtrSet<Constant *, 32> Free;
	Reach Reached(M);

	for (Function &F : M) {
		if (Function *Twin = announced(F); Twin && !Reached.has(Twin))
			F.setPrefixData(nullptr);
		if (F.hasFnAttribute(TwinAttribute) && !Reached.has(&F))
			Free.insert(&F);
	}
	if (Free.empty())
		return PreservedAnalyses::all();
	removeFromUsedLists(M, [&](Constant *C) { return Free.contains(C->stripPointerCasts()); });
	return PreservedAnalyses::none();
}

/* The twin of the function that the linker chose, or that function; null: it is not in this module, or not chosen
 * yet. */
static Function *joined(const Function &Either)
{
	GlobalValue *V = chosenBy(Either);

	if (auto *A = dyn_cast_or_null<GlobalAlias>(V))
		V = replaceable(*A) ? nullptr : A->getAliaseeObject();
	auto *F = dyn_cast_or_null<Function>(V);
	if (!F || F->isDeclarationForLinker() || replaceable(*F) || F->getFunctionType() != Either.getFunctionType())
		return nullptr;
	Function *Twin = announced(*F);
	return Twin ? Twin : F;
}

/* Resolves the calls that twins make of other files' functions, which are now here. These calls are still not
 * inlined. */
PreservedAnalyses Join::run(Module &M, ModuleAnalysisManager &)
{
	bool Changed = false;

	for (Function &F : make_early_inc_range(M)) {
		Function *To = joined(F);

		if (!To)
			continue;
		for (User *U : F.users())
			if (auto *Call = dyn_cast<CallBase>(U))
				Call->setIsNoInline();
		F.replaceAllUsesWith(To);
		/* Its slot would look like a pointer to the function. */
		Value *Slot = cast<CallBase>(F.getEntryBlock().front()).getArgOperand(0);
		F.eraseFromParent();
		cast<GlobalVariable>(Slot)->eraseFromParent();
		Changed = true;
	}
	return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
} // namespace weft
